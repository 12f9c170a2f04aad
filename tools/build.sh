#!/bin/bash
# Builds and installs below the build folder: build.sh BUILD PREFIX
set -euo pipefail
cd -- "$(dirname -- "$0")/.."
build=$1 prefix=$2

for program in meson ninja cc pkg-config; do
	command -v "$program" >/dev/null || {
		echo "build: '$program' is missing; as root: make deps" >&2
		exit 1
	}
done
# A build folder knows where its sources were; in a tree that was moved or copied it is of no use.
if [ -f "$build/build.ninja" ] && [ "$(cat "$build/source" 2>/dev/null)" != "$PWD" ]; then
	rm -rf -- "$build"
fi
if [ ! -f "$build/build.ninja" ]; then
	meson setup --prefix="$prefix" "$build"
	pwd >"$build/source"
fi
ninja -C "$build" --quiet
DESTDIR=$PWD/$build/root meson install -C "$build" --no-rebuild --only-changed --quiet
