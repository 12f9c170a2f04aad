#!/bin/bash
# What `make run` does once SPACE is built: run.sh SPACE DATA
set -euo pipefail
cd -- "$(dirname -- "$0")/.."
space=$1 data=$2
export SPACE_DATA=$data

say() {
	printf '\n%s\n' "$*"
}

# A node from before the last build would run the old programs.
end_old_node() {
	if [ -S "$data/state/api.sock" ] &&
		[ -n "$(find "${space%/bin/*}" -newer "$data/state/endpoint" -type f -print -quit)" ]; then
		"$space" down
	fi
}

tools/share-template.sh "$(dirname -- "$data")/.space-test/seed" "$data"
mkdir -p -- "$data"
say "The template 'base', from this machine's own package mirror (the first time: minutes):"
"$space" template build base
end_old_node
say "The node:"
"$space" up --listen 127.0.0.1:0
say "\$ space run python3 -c 'print(6*7)'"
"$space" run --timing python3 -c 'print(6*7)'
echo "The first sandbox of a size boots its template; from then on its saved state is restored:"
"$space" run --timing true

short=${space#"$PWD"/}
cat <<TEXT

A node still runs; it keeps its data in ${data#"$PWD"/}.
  more:   export SPACE_DATA=$data PATH=${space%/space}:\$PATH
          space run sh -c 'uname -r; id'
          space --help
  SDK:    eval "\$(space env)"    then any E2B SDK talks to this node
  stop:   make stop
TEXT
