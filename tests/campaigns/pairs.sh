#!/bin/bash
# pairs.sh OUT
#
# Measures pairs of the catalogue (docs/bench-catalogue.md) on a Weir of this machine: caches
# excluded against included and nconnect=8 against 1 over NFS, and the metadata cache on against off
# over SMB and, for orientation, over NFS. Writes one page of them and their results to OUT. PAIRS
# are other options for `weir bench run`. WEIR is the program; needs root, to drop the kernel's
# caches.
set -eu
# shellcheck source=../clients/suite.bash
. "$(dirname "$(realpath -e "$0")")/../clients/suite.bash"
out=$(realpath -m "$1")
nfs=127.0.0.1:24049 smb=127.0.0.1:24445
nfs_tests=(anf-linux-4k-random anf-linux-4k-random-uncached anf-nconnect-4k-random anf-nconnect-4k-random-writes)
options=${PAIRS:---scale auto --max-data 4GiB --warmup 2s --time 5s --repeats 5}

bench() {
    # shellcheck disable=SC2086
    "$WEIR" --data "$data" bench run $options --server-pid "$server" "$@"
}

start_server "$nfs" --smb "$smb"
WEIR_SMB_PASSWORD=$(head -c 15 /dev/urandom | base64)
export WEIR_SMB_PASSWORD
printf '%s\n' "$WEIR_SMB_PASSWORD" | weir user create bench --uid 5001
weir pool create fast --level ultra --size 400TiB --overcommit
weir volume create home --pool fast --quota 100TiB --protocols nfs,smb --owner bench --group 5001 --mode 0777
weir share set home --network any --access rw

mkdir -p "$out"
bench "${nfs_tests[@]}" "nfs://$nfs/home" --label NFS --drop-caches --json "$out/nfs.json"
results=("$out/nfs.json")
for setting in off on; do
    weir volume set home --metadata-cache "$setting"
    for target in "smb://bench@$smb/home" "nfs://$nfs/home"; do
        test=azure-metadata-cache name=SMB
        [ "${target%%:*}" = smb ] || test=$test-nfs name=NFS
        results+=("$out/$name-$setting.json")
        bench "$test" "$target" --setting "metadata-cache=$setting" --label "$name, cache $setting" \
            --json "$out/$name-$setting.json"
    done
done
"$WEIR" bench report "${results[@]}" --html "$out/pairs.html"
"$WEIR" bench report "${results[@]}"
