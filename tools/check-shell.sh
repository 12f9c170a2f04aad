#!/bin/bash
# Scripts parse; JavaScript and Python too.
set -euo pipefail
tools/sources.sh '*.sh' build customize recipe run | xargs -n 1 bash -n
tools/sources.sh '*.py' | xargs -n 1 python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())'
if command -v node >/dev/null; then
	tools/sources.sh '*.mjs' '*.cjs' | xargs -n 1 node --check
fi
