#!/bin/bash
# Include arrows go one way; a program never includes another program's headers; the libraries' own
# types stay where they are wrapped.
set -euo pipefail
bad=0

# may DIRECTORY INCLUDABLE...: what sources in src/DIRECTORY may include of src/.
may() {
	local directory=$1 file included
	shift
	while IFS=: read -r file included; do
		[ ! -f "${file%/*}/$included" ] || continue # beside it
		# A program's test may make disks as spaced does.
		[[ $file != *_test.c || $included != store/* ]] || continue
		case " $directory $* " in
		*" ${included%%/*} "*) ;;
		*)
			echo "$file: includes $included; $directory may include only: $directory $*"
			bad=1
			;;
		esac
	done < <(find "src/$directory" -name '*.[ch]' -print0 |
		xargs -r -0 grep -HoE '^#include "[^"]+"' | sed 's/#include "\(.*\)"/\1/')
}

# only PATTERN DIRECTORY...: a library's header is included in these places only.
only() {
	local pattern=$1 directories found
	shift
	directories=$(IFS='|' && echo "$*")
	found=$(grep -rnE --include='*.[ch]' "^#include <($pattern)" src | grep -vE "^src/($directories)/" || :)
	if [ -n "$found" ]; then
		echo "only src/{$*} may include this:"
		echo "$found"
		bad=1
	fi
}

may base
may wire base
may os base
may net os wire base
may engine net os wire base
may store net os wire base
may jailer net os wire base
may daemon net os wire base
may init net os wire base
may keeper engine net os wire base
may spaced store engine net os wire base
may cli engine store net os wire base

only 'uv\.h|nghttp2/|curl/' net
only 'gnutls/' net store
only 'sqlite3\.h' store
only 'seccomp\.h' os
exit $bad
