#!/bin/bash
# Leftovers, and what a text file of this project never has.
set -euo pipefail
bad=0

# none SAYS PATTERN NAME-PATTERN...
none() {
	local says=$1 pattern=$2 found
	shift 2
	found=$(tools/sources.sh "$@" | grep -v '^tools/check-words\.sh$' | xargs grep -nIE -- "$pattern" || :)
	if [ -n "$found" ]; then
		printf '%s:\n%s\n' "$says" "$found"
		bad=1
	fi
}

none 'leftovers' '\b(TODO|FIXME|XXX|HACK)\b' '*'
none 'comments of C++ in C' '^[[:space:]]*//' '*.c' '*.h'
none 'blanks at the end of a line' '[[:blank:]]$' '*.c' '*.h' '*.sh' '*.mjs' '*.py' '*.md' meson.build Makefile
none 'hosts of a package registry in a lock file' '"resolved"' package-lock.json
exit $bad
