# The SMB suites' server as this machine's smbd: all that it knows and keeps is in the suite's folder,
# and it is reached in the sandbox alone. SAMBA_MIN_PROTOCOL (SMB3_11) admits older dialects.

share_dir() { echo "$work/shares/$1"; }

# smbd looks at the files each time.
at_rest() { "$@"; }

# samba_share NAME: prints its section.
samba_share() {
    printf '[%s]\npath = %s\nread only = no\n' "$1" "$(share_dir "$1")"
    case $1 in
    readonly) echo 'read only = yes' ;;
    closed) echo 'valid users = ben' ;;
    hidden) echo 'browseable = no' ;;
    sealed) echo 'server smb encrypt = required' ;;
    esac
    case $1 in
    torture*) printf 'create mask = 0777\ndirectory mask = 0777\nvfs objects = acl_xattr streams_xattr\nacl_xattr:ignore system acls = yes\n' ;;
    # Names that Windows forbids, by the same characters that the Linux client uses.
    *) printf 'vfs objects = catia\ncatia:mappings = 0x22:0xf020,0x2a:0xf021,0x3a:0xf022,0x3c:0xf023,0x3e:0xf024,0x3f:0xf025,0x5c:0xf026,0x7c:0xf027\nmangled names = no\n' ;;
    esac
}

samba_configuration() {
    local name
    cat <<END
[global]
workgroup = WEIR
netbios name = PEER
server role = standalone server
map to guest = never
restrict anonymous = 2
private dir = $work/samba/private
lock directory = $work/samba/lock
state directory = $work/samba/state
cache directory = $work/samba/cache
pid directory = $work/samba/pid
ncalrpc dir = $work/samba/ncalrpc
passdb backend = tdbsam:$work/samba/private/passdb.tdb
log file = $work/samba/log
log level = 1
smb ports = $smb_port
disable netbios = yes
load printers = no
disable spoolss = yes
usershare max shares = 0
server min protocol = ${SAMBA_MIN_PROTOCOL:-SMB3_11}
server max protocol = SMB3_11
server signing = mandatory
server multi channel support = yes
interfaces = lo "weir0;speed=10000000000,capability=RSS"
kernel oplocks = no
kernel share modes = no
posix locking = no
ea support = yes
store dos attributes = yes
map archive = no
map hidden = no
map system = no
map readonly = no
END
    for name in $smb_shares; do samba_share "$name"; done
}

# smbd knows a user only if the machine does; nobody outside of the sandbox sees these.
samba_accounts() {
    local user
    cp /etc/passwd /etc/group "$work/samba"
    for user in $smb_users; do
        echo "$user:x:${smb_uid[$user]}:${smb_uid[$user]}::/nonexistent:/usr/sbin/nologin" >>"$work/samba/passwd"
        echo "$user:x:${smb_uid[$user]}:" >>"$work/samba/group"
    done
    mount --bind "$work/samba/passwd" /etc/passwd && mount --bind "$work/samba/group" /etc/group
    for user in $smb_users; do
        printf '%s\n%s\n' "${smb_password[$user]}" "${smb_password[$user]}" |
            smbpasswd -c "$work/samba.conf" -s -a "$user" >>"$work/server.log" 2>&1 || return 1
    done
}

start_smb() {
    local name
    if ! [ -e "$work/samba.conf" ]; then
        chmod 755 "$work"
        mkdir -p "$work"/samba/{private,lock,state,cache,pid,ncalrpc}
        for name in $smb_shares; do
            mkdir -p "$work/shares/$name" && chmod 777 "$work/shares/$name" && chown "${smb_uid[anna]}:${smb_uid[anna]}" "$work/shares/$name" || return 1
        done
        chmod 770 "$work/shares/own" || return 1
        samba_configuration >"$work/samba.conf"
        samba_accounts || return 1
    fi
    smbd -F -s "$work/samba.conf" >>"$work/server.log" 2>&1 &
    server=$!
    for _ in $(seq 300); do
        ! (: <"/dev/tcp/$smb_host/$smb_port") 2>/dev/null || return 0
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    tail -n 20 "$work/server.log" "$work/samba/log" | sed 's/^/# /'
    return 1
}

# Its exit code says nothing: it ends by the signal.
stop_smb() {
    stop_server TERM || true
}
