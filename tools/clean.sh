#!/bin/bash
# Removes what was built and the data of make run and make test: clean.sh SPACE BUILD DATA TEST_DATA
# The node of DATA is stopped by then; those that a broken-off test has left are stopped here.
set -euo pipefail
cd -- "$(dirname -- "$0")/.."
space=$1 build=$2 data=$3 test_data=$4

for state in "$test_data"/*/state; do
	if [ -e "$state" ] && [ -x "$space" ]; then
		"$space" down --data "$(dirname -- "$state")" || :
	fi
done
rm -rf --one-file-system -- "$build" build-* "$data" "$test_data" tests/node_modules
