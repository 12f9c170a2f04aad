#!/bin/bash
# Installs Debian packages: prints the apt line, then runs it. Needs root.
#   deps.sh [--if-missing] PACKAGE...
# --if-missing: says and does nothing when all of them are there.
set -euo pipefail

if_missing=
if [ "${1-}" = --if-missing ]; then
	if_missing=1
	shift
fi

die() {
	echo "deps: $*" >&2
	exit 1
}

command -v apt-get >/dev/null || die "there is no apt-get here; on Debian 12 these packages are needed: $*"

# Node from another source than Debian conflicts with Debian's npm, and serves as well.
wanted() {
	local package
	for package in "$@"; do
		case $package in
		nodejs | npm)
			if command -v node >/dev/null && command -v npm >/dev/null; then
				continue
			fi
			;;
		esac
		echo "$package"
	done
}

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

readarray -t packages < <(wanted "$@")
missing=()
for package in "${packages[@]}"; do
	installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} = 0 ]; then
	[ -n "$if_missing" ] || echo "all packages are installed"
	exit 0
fi
[ -z "$if_missing" ] || packages=("${missing[@]}")

line="apt-get install --yes --no-install-recommends ${packages[*]}"
echo "$line"
[ "$(id -u)" = 0 ] || die "${#missing[@]} packages are missing (${missing[*]}); installing them needs root: run the line above as root, or sudo make deps"
export DEBIAN_FRONTEND=noninteractive
apt-get -q update || die "apt-get update has failed"
exec ${line/apt-get/apt-get -q}
