#!/bin/bash
# Every header compiles alone: check-headers.sh SCRATCH
set -euo pipefail
scratch=$1/headers
mkdir -p -- "$scratch"
flags=$(pkg-config --cflags libuv libnghttp2 jansson sqlite3 gnutls libcurl libseccomp 2>/dev/null || :)
headers() {
	# banned.h forces itself in front of everything, it is no header of its own.
	tools/sources.sh '*.h' | grep '^src/' | grep -v '^src/base/banned\.h$'
}
headers | xargs -P 2 -I{} sh -c '
	printf "#include \"%s\"\n" "${1#src/}" | gcc -x c -std=gnu17 -D_GNU_SOURCE -DSPACE_VERSION=\"0\" \
		-include src/base/banned.h -Wall -Wextra -Werror -Wno-unused-function -Isrc '"$flags"' -fsyntax-only - ||
		{ echo "$1 does not compile alone"; exit 1; }' sh {}
