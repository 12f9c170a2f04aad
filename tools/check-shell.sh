#!/bin/bash
# Scripts parse; JavaScript and Python too.
set -euo pipefail
git grep -lE '^#!/bin/(ba)?sh' -- . | xargs -r -n 1 bash -n
for file in templates/lib/*.sh templates/*/recipe; do
	bash -n "$file"
done
git ls-files -z -- '*.py' | xargs -r -0 -n 1 python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())'
if command -v node >/dev/null; then
	git ls-files -z -- '*.mjs' | xargs -r -0 -n 1 node --check
fi
