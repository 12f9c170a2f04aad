#!/bin/bash
# Lists the project's own files, with or without git: sources.sh NAME-PATTERN... (as find takes them)
set -euo pipefail
cd -- "$(dirname -- "$0")/.."
names=()
for pattern in "$@"; do
	names+=(-o -name "$pattern")
done
find . \( -name .git -o -name node_modules -o -path './build*' -o -path './.space*' \) -prune -o \
	-type f \( "${names[@]:1}" \) -print | sed 's|^\./||' | sort
