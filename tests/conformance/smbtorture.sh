#!/bin/bash
# smbtorture (Debian's samba-testsuite) against an SMB server here, test by test, two at a time.
# Arguments are options of smbtorture.py, e.g. --only lock or --out FILE.
set -u
here=$(dirname "$(realpath -e "$0")")
clients=$here/../clients
if [ "${1:-}" != inside ]; then
    exec "$clients/sandbox" "$0" inside "$@"
fi
shift
# Samba's own verdicts are those of a server that knows older dialects, as smbd does by itself.
export SAMBA_MIN_PROTOCOL=SMB2_02
# shellcheck source=../clients/smb.bash
. "$clients/smb.bash"

start_smb || exit 1
"$here/smbtorture.py" --peer "$smb_program" --known-here "$smb_known" --slow "$smb_slow" "$@" "$(client_configuration)" "$smb_host:$smb_port" anna "${smb_password[anna]}" torture0 torture1 ||
    failed=1
check server-stops-on-request stop_smb
if [ $failed -ne 0 ]; then
    echo "# the server's last words:"
    tail -n 40 "$work/server.log" | sed 's/^/# /'
fi
exit $failed
