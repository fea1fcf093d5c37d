#!/bin/bash
# A client in Python, smbprotocol, against an SMB server here: requests made one by one, and messages
# that no honest client sends. Arguments are names of single tests.
set -u
here=$(dirname "$(realpath -e "$0")")
repository=$(realpath -e "$here/../..")
venv=$repository/target/tools/smbprotocol

# make_venv: the pinned libraries in a place of their own. Outside of the sandbox, where there is a network.
make_venv() {
    local list=$here/smbprotocol/requirements.txt
    ! cmp -s "$list" "$venv/requirements.txt" || return 0
    rm -rf "$venv"
    python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$list" && cp "$list" "$venv/requirements.txt"
}

if [ "${1:-}" != inside ]; then
    make_venv || { echo "not ok - installs-smbprotocol"; exit 1; }
    exec "$here/sandbox" "$0" inside "$@"
fi
shift
# shellcheck source=smb.bash
. "$here/smb.bash"

export SMB_PEER=$smb_program SMB_HOST=$smb_host SMB_PORT=$smb_port SMB_KNOWN=$smb_known PYTHONDONTWRITEBYTECODE=1 WEIR WEIR_DATA=$data
for user in $smb_users; do export "SMB_PASSWORD_$user=${smb_password[$user]}"; done
ulimit -n 16384
start_smb || exit 1
export SMB_WORK
SMB_WORK=$(share_dir work)

# tests_of HALF NAME...: prints those of the names that are tests in that half of the suite.
tests_of() {
    local half=$1 files name
    shift
    case $half in
    cases) files=("$here/smbprotocol/cases.py") ;;
    sparse) files=("$here/smbprotocol/sparse.py") ;;
    hostile)
        files=("$here/smbprotocol/logins.py" "$here/smbprotocol/beginnings.py" "$here/smbprotocol/messages.py"
            "$here/smbprotocol/ids.py" "$here/smbprotocol/files.py")
        ;;
    offered) files=("$here/smbprotocol/offered.py") ;;
    esac
    for name; do ! grep -qx "def $name(server):" "${files[@]}" || echo "$name"; done
}

listed=''
[ -z "$smb_known" ] || listed=$(sed -n '/^#/d; s/^\([a-z-]*\)\t.*/\1/p' "$smb_known" | tr - _)
for name in "$@" $listed; do
    [ -n "$(tests_of cases "$name")$(tests_of sparse "$name")$(tests_of hostile "$name")$(tests_of offered "$name")" ] || { echo "not ok - knows-the-test # $name"; failed=1; }
done
# First, because of the refused logins that the others make only some are recorded.
if [ "$smb_program" = weir ] && [ $# -eq 0 ]; then
    "$venv/bin/python3" "$here/smbprotocol/admin.py" || failed=1
fi
for half in cases sparse hostile; do
    mapfile -t names < <(tests_of "$half" "$@")
    [ $# -eq 0 ] || [ ${#names[@]} -gt 0 ] || continue
    "$venv/bin/python3" "$here/smbprotocol/$half.py" "${names[@]}" || failed=1
done
if [ "$smb_program" = weir ]; then
    check starts-again at_rest export SMB_SIGNING=offered
    "$venv/bin/python3" "$here/smbprotocol/offered.py" "$@" || failed=1
fi
check stops stop_smb
if [ $failed -ne 0 ]; then
    echo "# the server's last words:"
    tail -n 40 "$work/server.log" | sed 's/^/# /'
fi
exit $failed
