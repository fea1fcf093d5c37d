#!/bin/bash
# A directory of a million entries (WEIR_WIDE_ENTRIES) over NFS, on ext4 and on XFS made for it:
# what each step takes and what memory the server holds. Needs root, loop devices and about 6 GiB.
set -eu
: "${WEIR_WIDE_ENTRIES:=1000000}"
export WEIR_WIDE_ENTRIES
cd "$(dirname "$0")/../.."
cargo test --release --locked --no-run -p weir-weir --test server
work=$(mktemp -d "${TMPDIR:-/tmp}/weir-wide.XXXXXX")
trap 'umount "$work"/mounted 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir "$work/mounted"
for file_system in ext4 xfs; do
    truncate -s 6G "$work/image"
    case $file_system in
    ext4) mkfs.ext4 -q -F -N 1200000 "$work/image" ;;
    xfs) mkfs.xfs -q -f "$work/image" ;;
    esac
    mount -o loop "$work/image" "$work/mounted"
    echo "== $file_system"
    TMPDIR=$work/mounted cargo test --release --locked -q -p weir-weir --test server wide:: -- --nocapture
    umount "$work/mounted"
    rm "$work/image"
done
