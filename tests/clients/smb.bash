# Sourced by the SMB suites: the shares and users that they work with, and the server that has them.
# SMB_PEER names that server; its file, smb-$SMB_PEER.bash, defines
#
#   start_smb         serves on port 445 of every address; returns when it answers
#   stop_smb          ends the server; fails unless it ended cleanly
#   share_dir SHARE   prints the directory of this machine that holds the share's files
#   at_rest COMMAND   changes files there while the server does not serve them
#
# so that a suite which passes with a server known to be good can be told from one that is broken.

# `eve` is who others pretend to be.
smb_users='anna ben eve'
declare -A smb_uid=([anna]=5001 [ben]=5002 [eve]=5003)
declare -A smb_password=([anna]='Annas Wort 1' [ben]='bens-Wort-2' [eve]='Eves Wort/3')
# The top directory of a share is anna's with mode 777. Everybody with an account may read and write in
# a share, with these exceptions: `readonly` is readable only, `closed` is for ben alone, `hidden` is in no list of shares, `sealed` is served
# to sessions that encrypt, and the top directory of `own` has mode 770. Whatever smbtorture leaves behind stays in shares of its own.
smb_shares='work readonly closed hidden sealed torture0 torture1 own'
smb_host=127.0.0.1
smb_port=445

SMB_PEER=${SMB_PEER:-weir}
# The program that it is, of which the files may lie in several ways: weir or samba.
smb_program=${SMB_PEER%%-*}
# The list of tests that have another verdict where the files lie, if there are any.
smb_known=''
# How many times as long as elsewhere a test of smbtorture may take.
smb_slow=1
case $SMB_PEER in
# This machine's smbd is no program of ours, and needs none.
samba) : "${WEIR:=/bin/true}" ;;
esac
# shellcheck source=suite.bash
. "$(dirname "${BASH_SOURCE[0]}")/suite.bash"
# shellcheck source=/dev/null
. "$repository/tests/clients/smb-$SMB_PEER.bash"

# client_configuration: prints the name of a configuration for Samba's client programs, which keeps
# them from this machine's own and from its files.
client_configuration() {
    local file=$work/client.conf
    [ -e "$file" ] || {
        mkdir -p "$work/client"
        printf '[global]\n'
        printf '%s directory = %s\n' lock "$work/client" state "$work/client" cache "$work/client" private "$work/client"
        printf 'workgroup = WEIR\nnetbios name = CLIENT\nname resolve order = host\nclient max protocol = SMB3_11\n'
    } >"$file"
    echo "$file"
}
