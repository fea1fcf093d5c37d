# The SMB suites' server as Weir, with the volume of each share in one pool. smb-weir-cephfs.bash
# replaces share_dir, prepare, make_pool and await_volumes.

share_dir() { echo "$data/pools/1/volumes/$(smb_volume "$1")/root"; }

# The data directory is Weir's alone while it serves.
at_rest() { stop_smb && "$@" && start_smb; }

# smb_volume SHARE: prints the number of its volume.
smb_volume() {
    local name number=0
    for name in $smb_shares; do
        number=$((number + 1))
        [ "$name" != "$1" ] || break
    done
    echo $number
}

# weir_share NAME: makes the volume, and the share with its rules. `own` is left as it is made.
weir_share() {
    local name=$1 mode=0777
    [ "$name" != own ] || mode=0770
    weir volume create "$name" --pool main --quota 1TiB --protocols nfs,smb --owner anna --group "${smb_uid[anna]}" --mode $mode || return 1
    case $name in
    own) ;;
    readonly) weir share set "$name" --network any --access ro ;;
    closed) weir share set "$name" --network any --user ben --access rw ;;
    hidden) weir volume set "$name" --smb-hidden on && weir share set "$name" --network any --access rw ;;
    sealed) weir volume set "$name" --smb-encrypt on && weir share set "$name" --network any --access rw ;;
    *) weir share set "$name" --network any --access rw ;;
    esac
}

# prepare: makes what the server needs before its first start.
prepare() { :; }

make_pool() { weir pool create main --level ultra --size 100TiB; }

# await_volumes: returns when those that are there are served. A server alone has them before it answers.
await_volumes() { :; }

# The first start makes users, volumes and rules online. SMB_SIGNING is `required` or `offered`.
start_smb() {
    local name user
    [ -e "$work/made" ] || prepare || return 1
    "$WEIR" serve --data "$data" --nfs 0.0.0.0:2049 --smb "0.0.0.0:$smb_port" \
        --smb-signing "${SMB_SIGNING:-required}" >>"$work/server.log" 2>&1 &
    server=$!
    for _ in $(seq 300); do
        ! { (: <"/dev/tcp/127.0.0.1/$smb_port") 2>/dev/null && weir pool list 2>/dev/null; } || break
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    if ! weir volume list 2>/dev/null; then
        tail -n 20 "$work/server.log" | sed 's/^/# /'
        return 1
    fi
    if [ -e "$work/made" ]; then
        await_volumes
        return
    fi
    make_pool || return 1
    for user in $smb_users; do
        printf '%s\n' "${smb_password[$user]}" |
            weir user create "$user" --uid "${smb_uid[$user]}" || return 1
    done
    for name in $smb_shares; do weir_share "$name" || return 1; done
    weir export add work --network 10.77.0.0/24 --access rw --squash none || return 1
    smb_nfs_port=2049
    touch "$work/made"
    await_volumes
}

stop_smb() {
    stop_server TERM
}
