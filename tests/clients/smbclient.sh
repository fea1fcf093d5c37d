#!/bin/bash
# Samba's smbclient against an SMB server here: files there and back, names, permissions, who may
# come in, and what can be read on the wire.
set -u
here=$(dirname "$(realpath -e "$0")")
if [ "${1:-}" != inside ]; then
    exec "$here/sandbox" "$0" inside
fi
# shellcheck source=smb.bash
. "$here/smb.bash"

user=anna password=${smb_password[anna]} port=$smb_port

# client ARG...: smbclient as that user.
client() {
    USER=$user PASSWD=$password smbclient -s "$(client_configuration)" -p "$port" -m SMB3_11 "$@" </dev/null
}

# rpc COMMAND: a call of rpcclient as that user.
rpc() {
    USER=$user PASSWD=$password rpcclient -s "$(client_configuration)" -p "$port" -m SMB3_11 \
        -U "$user%$password" "$smb_host" -c "$1" </dev/null
}

# smb SHARE COMMANDS [OPTION...]: one session; fails as its last command does.
smb() {
    local share=$1 commands=$2
    shift 2
    (cd "$local" && client "//$smb_host/$share" -U "$user%$password" "$@" -c "$commands")
}

# says WORDS COMMAND...: it prints them.
says() {
    local words=$1 code=0
    shift
    "$@" >"$work/said" 2>&1 || code=$?
    cat "$work/said"
    grep -qE -e "$words" "$work/said" && [ $code -lt 124 ]
}

# lacks WORDS COMMAND...: it succeeds and does not print them.
lacks() {
    local words=$1
    shift
    "$@" >"$work/said" 2>&1 || return 1
    cat "$work/said"
    ! grep -qE -e "$words" "$work/said"
}

# fails STATUS COMMAND...: it says so. Statuses are given without their NT_STATUS; smbclient's code is
# that of a success after some of them.
fails() {
    local words=$1
    shift
    says "NT_STATUS_($words)\b" "$@"
}

as_ben() { local user=ben password=${smb_password[ben]}; "$@"; }
with_password() { local password=$1; shift; "$@"; }
with_user() { local user=$1; shift; "$@"; }

# list: the shares as smbclient lists them, one `KIND|NAME|COMMENT` a line.
list() { client -g -L "//$smb_host" -U "$user%$password" "$@"; }

lists_shares() {
    says '^Disk\|work\|' list && says '^IPC\|IPC\$\|' list && says '^Disk\|sealed\|' list && lacks '\|hidden\|' list &&
        smb hidden ls && says '^netname: hidden' rpc 'netsharegetinfo hidden 1'
}

# The same file through both, and at rest.
round_trip() {
    smb work "put text; get text back" && cmp "$local/text" "$local/back" && cmp "$local/text" "$files/text" &&
        : >"$local/empty" && smb work "put empty; get empty back" && ! [ -s "$local/back" ]
}

replaces() {
    smb work 'put text replaced' && smb work 'put short replaced' && cmp "$local/short" "$files/replaced" &&
        smb work 'get replaced back' && cmp "$local/short" "$local/back"
}

large_file() {
    smb work 'put large; get large large.back' && cmp "$local/large" "$local/large.back" && cmp "$local/large" "$files/large" &&
        rm "$local/large.back"
}

# smbclient reads as many bytes beyond the end as it has already. After the first answer that there is
# nothing it takes the answers to its other reads for errors, so only one read may reach beyond the end.
resumes() {
    head -c 1000000 "$local/large" >"$local/part" && smb work 'reget large part' && cmp "$local/large" "$local/part" &&
        head -c 60000 "$local/text" >"$local/part" && smb work 'put text; reget text part' && cmp "$local/text" "$local/part" && rm "$local/part"
}

# The server copies, and the bytes do not travel.
copies_on_the_server() {
    smb work 'scopy large copied' && cmp "$local/large" "$files/copied" && smb work 'del copied' && ! [ -e "$files/copied" ]
}

copies_a_tree_there() {
    cp -r "$repository/crates" "$local/tree" && smb work 'recurse ON; prompt OFF; mput tree' && diff -r "$local/tree" "$files/tree"
}

copies_a_tree_back() {
    mkdir "$local/fetched" && smb work "lcd fetched; recurse ON; prompt OFF; mget tree" && diff -r "$local/tree" "$local/fetched/tree"
}

tars_a_tree() {
    (cd "$local" && client "//$smb_host/work" -U "$user%$password" -Tc tree.tar tree) && mkdir "$local/untarred" && tar -C "$local/untarred" -xf "$local/tree.tar" &&
        diff -r "$local/tree" "$local/untarred/tree"
}

removes_a_tree() {
    smb work 'deltree tree' && ! [ -e "$files/tree" ] && fails 'OBJECT_NAME_NOT_FOUND|NO_SUCH_FILE' smb work 'ls tree'
}

many_files() {
    local number
    mkdir "$local/many" "$local/many.back" || return 1
    for number in $(seq 500); do seq "$number" >"$local/many/file $number.txt"; done
    smb work 'recurse ON; prompt OFF; mput many' && [ "$(smb work 'ls many\*.txt' | grep -c '  file ')" = 500 ] &&
        smb work 'cd many; lcd many.back; prompt OFF; mget *' && diff -r "$local/many" "$local/many.back" &&
        smb work 'cd many; del *' && smb work 'rmdir many' && ! [ -e "$files/many" ]
}

directories() {
    smb work 'mkdir made; mkdir made\in; cd made\in; put text' && [ -f "$files/made/in/text" ] &&
        fails OBJECT_NAME_COLLISION smb work 'mkdir made' && fails DIRECTORY_NOT_EMPTY smb work 'rmdir made\in' &&
        fails OBJECT_PATH_NOT_FOUND smb work 'mkdir absent\in' &&
        smb work 'del made\in\text; rmdir made\in; rmdir made' && ! [ -e "$files/made" ] &&
        fails 'OBJECT_NAME_NOT_FOUND|NO_SUCH_FILE' smb work 'rmdir made'
}

renames() {
    smb work 'put text one; put short two; mkdir into' && fails OBJECT_NAME_COLLISION smb work 'rename one two' &&
        cmp "$local/short" "$files/two" && smb work 'rename one into\three' && ! [ -e "$files/one" ] && cmp "$local/text" "$files/into/three" &&
        smb work 'rename into\three two -f' && cmp "$local/text" "$files/two" && smb work 'rename into onto' && [ -d "$files/onto" ] &&
        fails 'OBJECT_NAME_NOT_FOUND' smb work 'rename into onto2' && smb work 'rmdir onto; del two'
}

deletes() {
    smb work 'put text gone; del gone' && ! [ -e "$files/gone" ] && fails 'NO_SUCH_FILE|OBJECT_NAME_NOT_FOUND' smb work 'del gone'
}

# names PATTERN: what matches it, in order.
names() { smb work "ls $1" | sed -n 's/^  \(.*\)  ... ... .. ..:..:.. ....$/\1/p' | sed 's/ *[0-9]*$//; s/  *[ADHNRS]*$//' | LC_ALL=C sort | tr '\n' ,; }

wildcards() {
    smb work 'mkdir wild; cd wild; put text a.txt; put text b.txt; put text abc.c; put text noext; put text a.b.txt' || return 1
    local pattern expected
    while read -r pattern expected; do
        [ "$(names "wild\\$pattern")" = "$expected" ] || { echo "$pattern: $(names "wild\\$pattern") instead of $expected"; return 1; }
    done <<'END'
*.txt a.b.txt,a.txt,b.txt,
?.txt a.txt,b.txt,
a* a.b.txt,a.txt,abc.c,
A*.TXT a.b.txt,a.txt,
n?ext noext,
* .,..,a.b.txt,a.txt,abc.c,b.txt,noext,
abc.c abc.c,
END
    smb work 'cd wild; del a*' && [ "$(names 'wild\*')" = .,..,b.txt,noext, ] && fails NO_SUCH_FILE smb work 'ls wild\*.absent' && smb work 'deltree wild'
}

# One name for a client whatever its case, and the case it was made with.
case_of_names() {
    smb work 'put text CaseOfNames; get caseofNAMES back; del CASEOFNAMES' && cmp "$local/text" "$local/back" && ! [ -e "$files/CaseOfNames" ]
}

odd_names() {
    local name long
    long=$(printf 'n%.0s' $(seq 255))
    for name in 'with space' 'Grüße' 'naïve 日本語' '.hidden' 'a.b.c' '#&$@!~' "it's" "$long"; do
        smb work "put text \"$name\"; get \"$name\" back" && cmp "$local/text" "$files/$name" && cmp "$local/text" "$local/back" &&
            says "^  ${name//$/\\$} " smb work 'ls' && smb work "del \"$name\"" && ! [ -e "$files/$name" ] || { echo "$name"; return 1; }
    done
    fails 'OBJECT_NAME_INVALID|OBJECT_PATH_SYNTAX_BAD' smb work "put text x$long"
}

# Names that Windows forbids are refused from a client and shown to it by characters of their own.
forbidden_names() {
    local name
    for name in 'a<b' 'a>b' 'a|b' 'a*b' 'a?b'; do
        fails OBJECT_NAME_INVALID smb work "put text \"$name\"" && ! [ -e "$files/$name" ] || { echo "$name"; return 1; }
    done
    install -m 644 "$local/text" "$files/a:b*c?" && says $'^  a\uf022b\uf021c\uf025 ' smb work ls &&
        smb work $'get a\uf022b\uf021c\uf025 back' && cmp "$local/text" "$local/back" &&
        smb work $'put short x\uf027y' && cmp "$local/short" "$files/x|y" && as_root_removes 'a:b*c?' 'x|y'
}

as_root_removes() { (cd "$files" && rm -f -- "$@"); }

attributes() {
    smb work 'put text marked; setmode marked +rh' && says '^attributes: .*RH' smb work 'allinfo marked' &&
        smb work 'setmode marked -rh' && says '^attributes: *(A )?\(' smb work 'allinfo marked' && smb work 'del marked'
}

times() {
    smb work 'put text dated; utimes dated 2001:02:03-04:05:06 -1 2001:02:03-04:05:06 -1' && [ "$(TZ=UTC stat -c %y "$files/dated" | cut -c1-10)" = 2001-02-03 ] &&
        says '^write_time: .* 2001' smb work 'allinfo dated' && smb work 'del dated'
}

space() { says 'blocks of size [0-9]+\. [0-9]+ blocks available' smb work ls; }

# Mode and owner at rest decide.
permissions() {
    as_ben smb work 'put text of-ben; mkdir of-ben.d' && [ "$(stat -c %u "$files/of-ben")" = 5002 ] &&
        at_rest chmod 644 "$files/of-ben" && at_rest chmod 755 "$files/of-ben.d" &&
        smb work 'get of-ben back' && cmp "$local/text" "$local/back" &&
        fails ACCESS_DENIED smb work 'put short of-ben' && fails ACCESS_DENIED smb work 'put text of-ben.d\new' &&
        fails ACCESS_DENIED smb work 'mkdir of-ben.d\new' &&
        at_rest chmod 600 "$files/of-ben" && fails ACCESS_DENIED smb work 'get of-ben back' && as_ben smb work 'get of-ben back' &&
        at_rest chmod 700 "$files/of-ben.d" && fails ACCESS_DENIED smb work 'ls of-ben.d\*' &&
        cmp "$local/text" "$files/of-ben" && as_ben smb work 'del of-ben; rmdir of-ben.d'
}

read_only_share() {
    install -m 666 "$local/text" "$(share_dir readonly)/text" && smb readonly 'get text back' && cmp "$local/text" "$local/back" &&
        local change
    for change in 'put short text' 'put short new' 'mkdir new' 'rename text new' 'del text'; do
        fails 'ACCESS_DENIED|MEDIA_WRITE_PROTECTED' smb readonly "$change" || { echo "$change"; return 1; }
    done
    cmp "$local/text" "$(share_dir readonly)/text" && [ "$(ls "$(share_dir readonly)")" = text ]
}

# A new share that was made for anna. Its rules are those of a new volume, for clients on this machine.
own_share() {
    local smb_host=127.0.0.1
    smb own 'put text; mkdir made; cd made; put short; get short back' && cmp "$local/short" "$local/back" && cmp "$local/text" "$(share_dir own)/text" &&
        as_ben fails ACCESS_DENIED smb own ls && as_ben fails ACCESS_DENIED smb own 'get text back' && as_ben fails ACCESS_DENIED smb own 'put short text' &&
        as_ben fails ACCESS_DENIED smb own 'mkdir other' && cmp "$local/text" "$(share_dir own)/text" && [ "$(ls "$(share_dir own)" | tr '\n' ,)" = made,text, ]
}

closed_share() { fails ACCESS_DENIED smb closed ls && as_ben smb closed ls; }
absent_share() { fails BAD_NETWORK_NAME smb absent ls; }
wrong_password() { fails LOGON_FAILURE with_password wrong smb work ls && fails LOGON_FAILURE with_password '' smb work ls && smb work ls; }
unknown_user() { fails LOGON_FAILURE with_user nobody-here smb work ls && fails LOGON_FAILURE with_user root smb work ls; }

# Nobody without a name gets further than a refusal, be it of the session or of all that it asks for.
anonymous() {
    fails 'ACCESS_DENIED|LOGON_FAILURE' client "//$smb_host/work" -N -U '' -c ls &&
        fails 'ACCESS_DENIED|LOGON_FAILURE' client "//$smb_host/work" -U '%' -c ls &&
        lacks_shares client -g -L "//$smb_host" -U '%' &&
        fails 'ACCESS_DENIED|LOGON_FAILURE' with_user guest with_password '' smb work ls
}

lacks_shares() {
    "$@" >"$work/said" 2>&1
    cat "$work/said"
    ! grep -q '^Disk|' "$work/said"
}

# The answers of the first version of NTLM are too weak to be taken.
old_answers() { fails LOGON_FAILURE smb work ls --option='client ntlmv2 auth=no' --option='client use spnego=yes'; }

# record COMMAND...: runs it with all that it sends and gets written to a file.
record() {
    rm -f "$work/record.port" "$work/wire"
    python3 "$here/smb-record.py" "$work/wire" "$smb_host:$smb_port" >"$work/record.port" &
    local recorder=$! port
    for _ in $(seq 300); do
        ! [ -s "$work/record.port" ] || break
        sleep 0.1
    done
    port=$(cat "$work/record.port")
    [ -n "$port" ] && "$@"
    local code=$?
    kill "$recorder"
    wait "$recorder" 2>/dev/null
    return $code
}

# There and back, with a secret that is found on the wire unless it is sealed.
signed() { record smb work 'put secret; get secret back' --client-protection=sign && cmp "$local/secret" "$local/back" && grep -q "$secret" "$work/wire"; }
sealed() { record smb work 'put secret; get secret back' --client-protection=encrypt && cmp "$local/secret" "$local/back" && [ -s "$work/wire" ] && ! grep -q "$secret" "$work/wire"; }
sealed_share() { record smb sealed 'put secret; get secret back' && cmp "$local/secret" "$local/back" && [ -s "$work/wire" ] && ! grep -q "$secret" "$work/wire"; }
sealed_tree() { rm -rf "$local/fetched" && mkdir "$local/fetched" && smb work 'recurse ON; prompt OFF; mput tree' --client-protection=encrypt && smb work 'lcd fetched; recurse ON; prompt OFF; mget tree' --client-protection=encrypt && diff -r "$local/tree" "$local/fetched/tree"; }

# The ciphers and ways to sign that a client may insist on.
algorithms() {
    local name
    for name in aes-128-gcm aes-128-ccm aes-256-gcm aes-256-ccm; do
        smb work 'put text; get text back' --client-protection=encrypt --option="client smb3 encryption algorithms=$name" &&
            cmp "$local/text" "$local/back" || { echo "$name"; return 1; }
    done
    for name in aes-128-gmac aes-128-cmac hmac-sha256; do
        smb work 'put text; get text back' --client-protection=sign --option="client smb3 signing algorithms=$name" &&
            cmp "$local/text" "$local/back" || { echo "$name"; return 1; }
    done
}

older_dialects() {
    local dialect
    for dialect in SMB2_02 SMB2_10 SMB3_00 SMB3_02; do
        refused smb work ls -m $dialect || { echo "$dialect"; return 1; }
    done
    refused smb work ls --option='client min protocol=NT1' -m NT1
}

start_smb || exit 1
local=$work/local files=$(share_dir work)
mkdir "$local"
seq 20000 >"$local/text"
echo short >"$local/short"
secret=mark-$RANDOM-$RANDOM-$RANDOM
seq -f "$secret %g" 2000 >"$local/secret"
head -c 104857600 /dev/urandom >"$local/large"

check lists-shares lists_shares
check copies-a-file-there-and-back round_trip
check replaces-a-file replaces
check copies-a-large-file large_file
check resumes-a-copy resumes
check copies-on-the-server copies_on_the_server
check copies-a-tree-there copies_a_tree_there
check copies-a-tree-back copies_a_tree_back
check writes-a-tree-to-tar tars_a_tree
check removes-a-tree removes_a_tree
check copies-many-files many_files
check makes-and-removes-directories directories
check renames renames
check deletes deletes
check matches-wildcards wildcards
check finds-names-in-any-case case_of_names
check keeps-odd-names odd_names
check keeps-forbidden-names-apart forbidden_names
check keeps-attributes attributes
check sets-times times
check tells-the-space space
check honours-permissions permissions
check serves-a-share-read-only read_only_share
check closes-a-share-to-a-user closed_share
check lets-the-owner-of-a-new-share-write own_share
check misses-an-absent-share absent_share
check refuses-a-wrong-password wrong_password
check refuses-an-unknown-user unknown_user
check refuses-anonymous-users anonymous
check refuses-old-answers old_answers
check signs signed
check seals sealed
check seals-a-share sealed_share
check seals-a-tree sealed_tree
check knows-every-algorithm algorithms
check refuses-older-dialects older_dialects
check stops stop_smb
if [ $failed -ne 0 ]; then
    echo "# the server's last words:"
    tail -n 40 "$work/server.log" | sed 's/^/# /'
fi
exit $failed
