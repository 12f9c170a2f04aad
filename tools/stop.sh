#!/bin/bash
# Ends the node of a data folder, with all its sandboxes: stop.sh SPACE DATA
set -euo pipefail
space=$1 data=$2

if [ ! -e "$data/state" ]; then
	echo "nothing runs"
	exit 0
fi
if [ ! -x "$space" ]; then
	echo "stop: there is no '$space' to do it with; run make first" >&2
	exit 1
fi
exec "$space" down --data "$data"
