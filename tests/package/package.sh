#!/bin/bash
# The Debian package in a clean Debian of its own: looked over by lintian, installed into a root where
# nothing runs, then into one booted with systemd (systemd-nspawn), upgraded, removed and purged, with
# files read back by an NFS client after each step. Needs DEB and NEXT, the package and one of a
# higher version; CACHE, a folder that keeps the root between runs. Leaves nothing else behind.
set -u
repository=$(realpath -e "$(dirname "${BASH_SOURCE[0]}")/../..")
# shellcheck source=../clients/tap.bash
. "$repository/tests/clients/tap.bash"
: "${DEB:?the package to test}" "${NEXT:?the same with a higher version}" "${CACHE:?a folder to keep the clean root in}"
DEB=$(realpath -e "$DEB") && NEXT=$(realpath -e "$NEXT") && mkdir -p "$CACHE" && CACHE=$(realpath -e "$CACHE") || exit 1
suite=bookworm
mirror=${WEIR_DEBIAN_MIRROR:-http://deb.debian.org/debian}
packages=systemd,systemd-sysv,dbus,libnfs-utils
work=$(mktemp -d "${TMPDIR:-/var/tmp}/weir-package.XXXXXX")
root=$work/root
nspawn='' leader=''

finish() {
    power_off
    rm -rf --one-file-system "$work"
}
trap finish EXIT
trap 'exit 143' INT TERM HUP

# A Debian without Weir. The first run fetches it and keeps it as a tar file.
make_root() {
    local tar
    tar=$CACHE/$suite-$(dpkg --print-architecture).tar
    mkdir -p "$root"
    if [ ! -s "$tar" ]; then
        debootstrap --variant=minbase --include=$packages $suite "$root" "$mirror" >"$work/debootstrap.log" 2>&1 ||
            { tail -n 20 "$work/debootstrap.log" | sed 's/^/# /'; return 1; }
        tar -C "$root" --numeric-owner --xattrs --acls -cf "$tar.new" . && mv "$tar.new" "$tar"
    else
        tar -C "$root" --numeric-owner --xattrs --acls -xf "$tar"
    fi || return 1
    install -m 644 "$DEB" "$root/weir.deb" && install -m 644 "$NEXT" "$root/next.deb"
}

# in_root COMMAND...: in the root while nothing runs there.
in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }

# inside COMMAND...: in the booted system.
inside() {
    nsenter --target "$leader" --all -- /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        DEBIAN_FRONTEND=noninteractive WEIR_DATA=/var/lib/weir "$@"
}

boot() {
    local state
    # Opening files by handle is not among the system calls that nspawn lets through by itself.
    systemd-nspawn --quiet --register=no --keep-unit --boot --private-network --directory="$root" --hostname=weir-package \
        --system-call-filter='name_to_handle_at open_by_handle_at' --console=pipe </dev/null >"$work/console.log" 2>&1 &
    nspawn=$!
    for _ in $(seq 300); do
        leader=$(pgrep -P "$nspawn" | head -n 1)
        if [ -n "$leader" ]; then
            state=$(inside systemctl is-system-running 2>/dev/null)
            case $state in running | degraded) return 0 ;; esac
        fi
        kill -0 "$nspawn" 2>/dev/null || break
        sleep 0.2
    done
    echo "# the system does not come up:"
    tail -n 30 "$work/console.log" | sed 's/^/# /'
    return 1
}

power_off() {
    [ -n "$nspawn" ] || return 0
    # To the manager inside: halt.
    [ -z "$leader" ] || kill -s RTMIN+4 "$leader" 2>/dev/null
    for _ in $(seq 150); do
        kill -0 "$nspawn" 2>/dev/null || break
        sleep 0.2
    done
    kill -KILL "$nspawn" 2>/dev/null
    wait "$nspawn" 2>/dev/null
    nspawn='' leader=''
}

# eventually COMMAND...: within half a minute.
eventually() {
    for _ in $(seq 150); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.2
    done
    "$@"
}

lintian_is_content() {
    local said
    said=$(lintian --allow-root --fail-on error,warning --pedantic "$DEB" 2>&1)
    local code=$?
    echo "$said"
    [ "$code" -eq 0 ] && ! grep -q 'unused-override' <<<"$said"
}

pages_are_clean() {
    local page bad=0
    for page in "$root"/usr/share/man/man[15]/weir*.gz; do
        # A date would make every build different; a paragraph more or less can't be seen.
        zcat "$page" | mandoc -T lint -W warning |
            grep -v -e 'missing date' -e 'skipping paragraph macro' | sed "s|^|${page##*/}: |" | grep . && bad=1
    done
    [ $bad -eq 0 ] && [ -s "$root/usr/share/man/man1/weir-volume-create.1.gz" ] && [ -s "$root/usr/share/man/man5/weir.toml.5.gz" ]
}

url='nfs://127.0.0.1/home/file?version=3&nfsport=2049&mountport=2049'
serves() { eventually inside weir health; }
file_is_there() { serves && inside nfs-cat "$url" | cmp - "$root/original"; }
makes_a_volume() {
    head -c 3000000 /dev/urandom >"$root/original"
    serves && inside weir pool create fast --level premium --size 4TiB && inside weir volume create home --pool fast --quota 1TiB &&
        inside nfs-cp /original "$url"
}
# A tree that the unit doesn't name can't be written to, and the refusal says what would help.
refuses_a_pool_elsewhere() {
    local said
    said=$(inside weir pool create elsewhere --level premium --size 1TiB --path /opt/elsewhere 2>&1) && return 1
    echo "$said"
    grep -q 'ReadWritePaths=' <<<"$said" && [ ! -e "$root/opt/elsewhere" ]
}
main_pid() { inside systemctl show --property=MainPID --value weir; }
version() { inside dpkg-query --showformat='${Version}' --show weir; }
# property NAME VALUE: what systemd says of the service.
property() { [ "$(inside systemctl show --property="$1" --value weir)" = "$2" ] || { inside systemctl status --no-pager weir; false; }; }

installs_without_a_running_system() {
    in_root apt-get install --yes --no-install-recommends /weir.deb &&
        [ -x "$root/usr/bin/weir" ] && [ -s "$root/usr/share/bash-completion/completions/weir" ] &&
        [ -L "$root/etc/systemd/system/multi-user.target.wants/weir.service" ] &&
        in_root weir config show --config /etc/weir/weir.toml && [ ! -e "$root/var/lib/weir" ]
}
leaves_nothing_where_it_was_never_used() {
    in_root apt-get purge --yes weir && [ -z "$(find "$root/etc" "$root/usr" "$root/var/lib" -xdev -iname '*weir*')" ]
}
starts_when_installed() {
    inside apt-get install --yes --no-install-recommends /weir.deb && property ActiveState active &&
        inside systemctl is-enabled weir
}
unit_is_well_formed() {
    local said
    said=$(inside systemd-analyze verify --man=no weir.service 2>&1)
    echo "$said"
    ! grep -qi weir <<<"$said"
}
# The eight that serving needs (docs/security.md), the filter, and no way back.
is_confined() {
    local status
    status=$(inside cat "/proc/$(main_pid)/status")
    grep -E '^(Cap|NoNewPrivs|Seccomp:)' <<<"$status"
    grep -q '^CapEff:.00000000080000df$' <<<"$status" && grep -q '^CapBnd:.0*$' <<<"$status" &&
        grep -q '^Seccomp:.2$' <<<"$status" && grep -q '^NoNewPrivs:.1$' <<<"$status"
}
only_root_may_look() { [ "$(inside stat -c '%a %U' /var/lib/weir)" = '700 root' ]; }
comes_back_after_a_crash() {
    local before
    before=$(main_pid)
    inside sh -c "kill -KILL $before" && eventually eval "[ \"\$(main_pid)\" != $before ] && [ \"\$(main_pid)\" != 0 ]" && file_is_there
}
upgrades() {
    local before from
    before=$(main_pid) from=$(version)
    inside sh -c 'echo "# mine" >>/etc/weir/weir.toml' &&
        inside apt-get install --yes --no-install-recommends /next.deb && [ "$(version)" != "$from" ] &&
        inside dpkg --compare-versions "$(version)" gt "$from" && [ "$(main_pid)" != "$before" ] && property ActiveState active
}
keeps_a_changed_configuration() { grep -q '^# mine$' "$root/etc/weir/weir.toml"; }
downgrades() { inside apt-get install --yes --allow-downgrades /weir.deb && property ActiveState active; }
removes() {
    local before
    before=$(main_pid)
    inside apt-get remove --yes weir && [ ! -e "$root/usr/bin/weir" ] &&
        refused inside sh -c "kill -0 $before" && [ -s "$root/etc/weir/weir.toml" ] && [ -s "$root/var/lib/weir/handle.key" ]
}
installs_again() { inside apt-get install --yes --no-install-recommends /weir.deb && property ActiveState active; }
purges() {
    inside apt-get purge --yes weir >"$work/purge.log" 2>&1 || { cat "$work/purge.log"; return 1; }
    cat "$work/purge.log"
    find "$root/etc" "$root/usr" -xdev -iname '*weir*'
    grep -q '/var/lib/weir is kept' "$work/purge.log" && [ -z "$(find "$root/etc" "$root/usr" -xdev -iname '*weir*')" ] &&
        [ -s "$root/var/lib/weir/handle.key" ] && refused inside systemctl cat weir
}

check lintian-finds-neither-errors-nor-warnings lintian_is_content
make_root || exit 1
check installs-where-nothing-runs-and-starts-nothing installs_without_a_running_system
check brings-clean-manual-pages pages_are_clean
check leaves-nothing-where-it-was-never-used leaves_nothing_where_it_was_never_used
boot || exit 1
check is-started-by-its-installation starts_when_installed
check brings-a-unit-that-systemd-finds-nothing-wrong-with unit_is_well_formed
check makes-a-pool-and-a-volume-and-takes-a-file makes_a_volume
check refuses-a-pool-outside-of-its-unit-and-says-what-helps refuses_a_pool_elsewhere
check runs-confined-in-its-unit is_confined
check keeps-its-data-from-others only_root_may_look
check comes-back-after-a-crash-with-the-file comes_back_after_a_crash
check upgrades-and-restarts upgrades
check has-the-file-after-the-upgrade file_is_there
check keeps-a-configuration-that-was-changed keeps_a_changed_configuration
check goes-back-to-the-version-before downgrades
check has-the-file-after-that file_is_there
check is-removed-without-configuration-and-data removes
check is-installed-again installs_again
check has-the-file-after-the-removal file_is_there
check is-purged-and-says-that-data-is-kept purges
check is-installed-after-the-purge installs_again
check has-the-file-after-the-purge file_is_there
exit "${failed:?}"
