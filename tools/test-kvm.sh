#!/bin/bash
# SPACE with KVM: test-kvm.sh SPACE DATA CACHE. Runs tools/kvm-case.sh in an emulated machine that has a
# /dev/kvm, so that it can be tested where there is none.
set -euo pipefail
here=$(dirname -- "$(realpath -- "$0")")
space=$1 data=$2 cache=$3
prefix=$(dirname -- "$(dirname -- "$space")")

mkdir -p -- "$cache"
"$here/share-template.sh" "$data" "$cache/seed"
mkdir -p -- "$cache/seed"
"$space" template build --data "$cache/seed" base

job=$(mktemp -d "$cache/job.XXXXXX")
trap 'rm -rf -- "$job"' EXIT
mkdir -p "$job/usr"
cp -a -- "$prefix" "$job/usr/local"
cp -al -- "$cache/seed" "$job/data"
cp -- "$here/kvm-case.sh" "$job/"
"$here/kvm-host.sh" "$cache/kvm-host" "$job" ./kvm-case.sh usr/local/bin/space data
