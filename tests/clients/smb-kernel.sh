#!/bin/bash
# The Linux kernel's SMB client, in a guest, against a server here: everyday work on two mounts with
# caches of their own, plain and sealed, compared with a local file system and with the files at rest.
set -u
here=$(dirname "$(realpath -e "$0")")
if [ "${1:-}" != inside ]; then
    exec "$here/sandbox" "$0" inside
fi
# shellcheck source=smb.bash
. "$here/smb.bash"

start_smb || exit 1

# is_copy NAME: compares that tree of the guest, as it is in the share's directory, with its source.
is_copy() { diff -r "$repository/crates" "$(share_dir work)/$1"; }

# The guest asks for what only this side can do by a line of its output.
mkfifo "$work/lines"
mkdir "$work/share"
"$here/guest" "$work/share" "$here/smb-kernel-cases.sh" "$repository" "${smb_password[anna]}" "${smb_password[ben]}" \
    "${smb_nfs_port:-}" >"$work/lines" &
guest=$!
while IFS= read -r line; do
    case $line in
    @at-rest*) check "${line#@}" is_copy "${line#@at-rest-}" ;;
    'not ok'*) failed=1; echo "$line" ;;
    *) echo "$line" ;;
    esac
done <"$work/lines"
wait $guest || { echo "not ok - the guest ended with code $?"; failed=1; }
check stops stop_smb
if [ $failed -ne 0 ]; then
    echo "# the server's last words:"
    tail -n 40 "$work/server.log" | sed 's/^/# /'
fi
exit $failed
