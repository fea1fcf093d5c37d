#!/bin/bash
# Runs in the guest: kernel-cases.sh REPOSITORY. Mounts the volumes and works on them.
set -u
repository=$1
server=10.77.0.1
remote=/mnt/nfs local=/local
mkdir -p "$remote" "$local" /mnt/{small,public,readonly,closed,second}

# shellcheck source=tap.bash
. "$repository/tests/clients/tap.bash"

# mount_volume VOLUME FOLDER [OPTIONS]
mount_volume() {
    mount -t nfs -o "vers=3,proto=tcp,port=2049,mountport=2049,mountproto=tcp,nolock,nconnect=4,hard${3:+,$3}" \
        "$server:/$1" "$2"
}

remount() { umount "$remote" && mount_volume work "$remote"; }

# as UID COMMAND...: as an ordinary user with no groups but its own.
as() {
    local uid=$1
    shift
    setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"
}

four_connections() {
    [ "$(grep -c 'xprt:.*tcp' /proc/self/mountstats)" -eq 4 ]
}

copy_tree() {
    cp -a "$repository/crates" "$local/tree" && cp -a "$local/tree" "$remote/tree" && diff -r "$local/tree" "$remote/tree"
}

tree_after_remount() {
    remount && diff -r "$local/tree" "$remote/tree"
}

tar_round_trip() {
    tar -C /usr/include -cf - linux | tar -C "$remote" -xf - && diff -r /usr/include/linux "$remote/linux" &&
        rm -r "$remote/linux" && ! [ -e "$remote/linux" ]
}

# A program of thirty files, so that make and the compiler stat, read and write like in daily work.
write_sources() (
    mkdir "$1" && cd "$1" || return 1
    local i
    for i in $(seq 30); do
        printf '#include "all.h"\nint part%d(void) { return %d; }\n' "$i" "$i" >"part$i.c"
    done
    { for i in $(seq 30); do echo "int part$i(void);"; done; } >all.h
    {
        printf '#include <stdio.h>\n#include "all.h"\nint main(void) { int sum = 0;\n'
        for i in $(seq 30); do echo "sum += part$i();"; done
        printf 'printf("%%d\\n", sum); return 0; }\n'
    } >main.c
    printf 'CFLAGS = -O1\nprogram: main.o libparts.a\n\t$(CC) -o $@ main.o libparts.a\nlibparts.a: $(patsubst %%.c,%%.o,$(wildcard part*.c))\n\tar rcD $@ $^\n' >Makefile
)

build_program() {
    write_sources "$local/program" && make -s -C "$local/program" &&
        write_sources "$remote/program" && make -s -j2 -C "$remote/program" &&
        [ "$("$remote/program/program")" = 465 ] &&
        cmp "$local/program/libparts.a" "$remote/program/libparts.a" &&
        make -C "$remote/program" | grep -q 'up to date'
}

names() (
    cd "$remote" && mkdir names && cd names || return 1
    local long
    long=$(printf 'n%.0s' $(seq 255))
    local name
    for name in ' ' '-rf' $'new\nline' $'\xff\xfe not utf-8' 'ünïcödé' '*?[]' "$long"; do
        echo "$name" >"./$name" && [ "$(cat "./$name")" = "$name" ] || return 1
    done
    [ "$(find . -type f -print0 | tr -dc '\0' | wc -c)" -eq 7 ] || return 1
    refused touch "x$long" && cd .. && rm -r names
)

renames() (
    cd "$remote" && mkdir -p renames/{a,b,full} && cd renames && echo 1 >one && echo 2 >two && touch full/x &&
        mv one two && [ "$(cat two)" = 1 ] && ! [ -e one ] && mv two a/three && mv a b/ &&
        [ "$(cat b/a/three)" = 1 ] && refused mv -T b full && refused mv b b/a/
)

links() (
    cd "$remote" && mkdir links && cd links && echo x >file && ln file hard && ln -s file soft && ln -s nowhere broken &&
        [ "$(stat -c %h file)" = 2 ] && [ "$(stat -c %i file)" = "$(stat -c %i hard)" ] &&
        [ "$(readlink soft)" = file ] && [ "$(cat soft)" = x ] && refused cat broken && rm file && [ "$(cat hard)" = x ] &&
        [ "$(stat -c %h hard)" = 1 ] && ln -s "$(printf 'd/%.0s' $(seq 400))" longlink && [ "$(readlink longlink | wc -c)" = 801 ]
)

special_files() (
    cd "$remote" && mkdir special && cd special && mkfifo pipe && mknod null c 1 3 && mknod disk b 7 0 &&
        [ "$(stat -c %F pipe null disk | sort | tr '\n' ,)" = 'block special file,character special file,fifo,' ] &&
        [ "$(stat -c %t,%T null)" = 1,3 ] && echo gone >null && (echo through >pipe & cat pipe) | grep -q through
)

sparse() (
    cd "$remote" && truncate -s 1G sparse && [ "$(stat -c %s sparse)" = 1073741824 ] && [ "$(stat -c %b sparse)" -lt 64 ] &&
        printf end | dd of=sparse bs=1 seek=1073741821 conv=notrunc status=none &&
        [ "$(tail -c 3 sparse)" = end ] && [ "$(stat -c %b sparse)" -lt 64 ] &&
        cmp -n 1048576 sparse /dev/zero && truncate -s 5 sparse && [ "$(stat -c %s sparse)" = 5 ] && rm sparse
)

permissions() (
    cd "$remote" && mkdir -p perm && cd perm && echo secret >private && chmod 600 private && echo all >open && chmod 644 open &&
        refused as 5001 cat private && as 5001 cat open && refused as 5001 touch new &&
        refused as 5001 chmod 666 private && refused as 5001 rm open &&
        mkdir -m 1777 shared && as 5001 touch shared/mine && [ "$(stat -c %u:%g shared/mine)" = 5001:5001 ] &&
        refused as 5002 rm shared/mine && refused as 5001 chown 5002 shared/mine &&
        chown 5002:5002 shared/mine && [ "$(stat -c %u shared/mine)" = 5002 ] && refused as 5001 cat shared/none
)

# The mode takes reading away, but a file that is open stays readable for its owner.
open_after_chmod() (
    cd "$remote/perm/shared" && as 5001 bash -c 'echo held >held && exec 3<held && chmod 000 held && [ "$(cat <&3)" = held ]'
)

set_group_bit() (
    cd "$remote" && mkdir group && chgrp 7000 group && chmod 2777 group && as 5001 touch group/file &&
        [ "$(stat -c %g group/file)" = 7000 ] && as 5001 mkdir group/sub && [ "$(stat -c %a group/sub)" = 2755 ]
)

# By an entry for a user, bounded by the mask, which is the group's part of the mode.
lists() (
    cd "$remote" && mkdir -m 755 lists && cd lists && echo text >file && chmod 600 file && refused as 5001 cat file &&
        setfacl -m u:5001:r file && as 5001 cat file && refused as 5001 sh -c 'echo more >>file' &&
        getfacl -n file | grep -qx 'user:5001:r--' && [ "$(stat -c %a file)" = 640 ] &&
        chmod 600 file && refused as 5001 cat file && setfacl -m m::r file && as 5001 cat file &&
        refused as 5001 setfacl -m u:5001:rwx file && setfacl -b file && refused as 5001 cat file &&
        ! getfacl -n file | grep -q mask
)

# What is made in a directory begins with its default list, and the umask has no part in it.
default_lists() (
    cd "$remote" && mkdir -m 755 handed && setfacl -d -m u:5001:rwx,g::-,o::- handed && umask 077 &&
        touch handed/file && mkdir handed/sub && [ "$(stat -c %a handed/file)" = 660 ] &&
        as 5001 sh -c 'echo mine >>handed/file' && refused as 5002 cat handed/file &&
        getfacl -d -n handed/sub | grep -qx 'user:5001:rwx' && as 5001 touch handed/sub/file && cd / && remount &&
        getfacl -n "$remote/handed/sub" | grep -qx 'default:user:5001:rwx'
)

# The server knows user 5005 to be in thirty groups, of which the client can send sixteen, and does
# not believe 5006 to be in any.
many_groups() (
    cd "$remote" && mkdir members && echo members >members/file && chown 0:8030 members/file && chmod 640 members/file &&
        setpriv --reuid=5005 --regid=5005 --groups "$(seq -s, 8001 8030)" cat members/file &&
        refused setpriv --reuid=5006 --regid=5006 --groups 8030 cat members/file
)

# Running as somebody else ends with a write by another user, and with a new owner.
set_id_bits() (
    cd "$remote" && mkdir -m 777 privilege && cd privilege && as 5001 sh -c 'echo x >file && chmod 6777 file' &&
        [ "$(stat -c %a file)" = 6777 ] && as 5002 sh -c 'echo y >>file' && [ "$(stat -c %a file)" = 777 ] &&
        as 5001 chmod 4755 file && chown 5002 file && [ "$(stat -c %a file)" = 755 ]
)

# Whoever may write a file may set its times to now; only its owner may set them to anything.
sets_times() (
    cd "$remote" && mkdir -m 777 clock && cd clock && as 5001 sh -c 'echo x >file && chmod 666 file' &&
        as 5001 touch -d '2001-01-01 UTC' file && as 5002 touch file && [ "$(stat -c %Y file)" -gt 1000000000 ] &&
        refused as 5002 touch -d '2002-01-01 UTC' file && as 5001 chmod 644 file && refused as 5002 touch file
)

# Without the sticky bit names belong to whoever may write the directory; with it to their owners.
sticky() (
    cd "$remote" && mkdir -m 1777 sticky && cd sticky && as 5001 touch a b && as 5002 touch c &&
        refused as 5002 mv a d && refused as 5002 mv c a && refused as 5002 rm b && as 5001 mv a d &&
        chmod 777 . && as 5002 mv d a && as 5002 rm b
)

times() (
    cd "$remote" && touch -d '1999-12-31 23:59:59.123456789 UTC' old &&
        [ "$(stat -c %.9Y old)" = 946684799.123456789 ] && touch -d '2100-01-01 UTC' late &&
        [ "$(stat -c %Y late)" = 4102444800 ] && cp -p old copy && [ "$(stat -c %Y copy)" = 946684799 ]
)

open_unlinked() (
    cd "$remote" && mkdir silly && exec 3<>silly/file && echo before >&3 && rm silly/file && ! [ -e silly/file ] &&
        echo after >&3 && [ "$(stat -L -c %s /dev/fd/3)" = 13 ] && exec 3>&- &&
        [ -z "$(ls -A silly)" ] && rmdir silly
)

exclusive_create() (
    cd "$remote" && (set -C; echo first >lockfile) && refused bash -c 'set -C; echo second >lockfile' &&
        [ "$(cat lockfile)" = first ]
)

append() (
    cd "$remote" && for i in $(seq 200); do echo "$i" >>appended || return 1; done && seq 200 | cmp - appended
)

big_directory() (
    cd "$remote" && mkdir many && cd many && seq 3000 | xargs touch && [ "$(ls | wc -l)" = 3000 ] &&
        [ "$(ls -l | wc -l)" = 3001 ] && ls | sort -n | cmp - <(seq 3000) && cd .. && rm -r many && ! [ -e many ]
)

big_file() {
    dd if=/dev/urandom of="$local/big" bs=1M count=64 status=none && dd if="$local/big" of="$remote/big" bs=1M conv=fsync status=none &&
        remount && cmp "$local/big" "$remote/big" && dd if="$remote/big" bs=4k skip=1000 count=500 iflag=direct status=none |
        cmp - <(dd if="$local/big" bs=4k skip=1000 count=500 status=none)
}

direct_writes() {
    dd if="$local/big" of="$remote/direct" bs=1M count=16 oflag=direct status=none && cmp -n 16777216 "$local/big" "$remote/direct" &&
        dd if="$local/big" of="$remote/synced" bs=64k count=16 oflag=sync status=none && cmp -n 1048576 "$local/big" "$remote/synced"
}

mapped_memory() {
    cc -o "$local/mapped" -x c - <<'C' && "$local/mapped" "$remote/mapped" && [ "$(tail -c +4097 "$remote/mapped" | head -c 5)" = hello ]
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char **words)
{
    int file = open(words[count - 1], O_RDWR | O_CREAT, 0600);
    if (ftruncate(file, 1 << 20))
        return 1;
    char *view = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    memcpy(view + 4096, "hello", 5);
    return msync(view, 1 << 20, MS_SYNC);
}
C
}

# A second mount with caches of its own sees what the first one did once it was closed.
close_to_open() {
    mount_volume work /mnt/second nosharecache && echo one >"$remote/shared" && [ "$(cat /mnt/second/shared)" = one ] &&
        echo two >/mnt/second/shared && [ "$(cat "$remote/shared")" = two ] && umount /mnt/second
}

size_of() { df -B1 --output=size "$1" | tail -n 1 | tr -d ' '; }

shows_quota() {
    [ "$(size_of "$remote")" = 1099511627776 ] && echo @quota >/dev/tty1 &&
        for _ in $(seq 600); do
            [ "$(size_of "$remote")" != 2199023255552 ] || return 0
            sleep 0.1
        done
    return 1
}

# What the client's own tools say of the mount and of its calls.
statistics() {
    local before
    mkdirs() { nfsstat -c -3 -l | awk 'NF > 1 && $(NF - 1) == "mkdir:" { print $NF }'; }
    nfsstat -m && nfsstat -m | grep -A 1 "^$remote from $server:/work" | grep -q 'vers=3,rsize=1048576,wsize=1048576' &&
        before=$(mkdirs) && mkdir "$remote"/counted-{1..7} && rmdir "$remote"/counted-{1..7} &&
        [ $(($(mkdirs) - ${before:-0})) = 7 ] && [ "$(df --output=iavail "$remote" | tail -n 1)" -gt 0 ]
}

keeps_quota() (
    cd /mnt/small && refused dd if=/dev/zero of=fill bs=1M count=100 conv=fsync 2>/tmp/complaint
    cat /tmp/complaint
    stat -c '%s bytes, %b blocks' fill
    # Blocks of 512 bytes, and room for the file system's own notes on where they are, which are no
    # data; the size may be more where later pages were written first.
    grep -qi 'quota' /tmp/complaint && [ "$(stat -c %b fill)" -le $((131072 + 64)) ] && rm fill &&
        for _ in $(seq 600); do
            ! dd if=/dev/zero of=again bs=1M count=30 conv=fsync || return 0
            sleep 0.1
        done
    return 1
)

squashes_root() (
    cd /mnt/public && refused touch by-root && refused chown 0 .
)

read_only() {
    ls /mnt/readonly && refused touch /mnt/readonly/file
}

refuses_strangers() {
    refused timeout 60 mount -t nfs -o vers=3,port=2049,mountport=2049,mountproto=tcp,nolock,soft,retry=0 "$server:/closed" /mnt/closed &&
        refused timeout 60 mount -t nfs -o vers=3,port=2049,mountport=2049,mountproto=tcp,nolock,soft,retry=0 "$server:/absent" /mnt/closed
}

# Writes 60 files one after the other; `files_are_whole` then knows what each must hold.
write_files() {
    local i
    mkdir "$remote/$1" || return 1
    for i in $(seq 60); do
        { seq "$i" $((i + 20000)) >"$remote/$1/$i.part" && mv "$remote/$1/$i.part" "$remote/$1/$i"; } || return 1
        echo "$i" >"/tmp/progress.$1"
    done
}

files_are_whole() {
    local i
    [ "$(ls "$remote/$1" | wc -l)" = 60 ] || { ls "$remote/$1"; return 1; }
    for i in $(seq 60); do
        seq "$i" $((i + 20000)) | cmp - "$remote/$1/$i" || return 1
    done
}

# through NAME REQUEST: the server ends as REQUEST says while a client writes, and comes back.
through() {
    write_files "$1" &
    local writer=$!
    while [ "$(cat "/tmp/progress.$1" 2>/dev/null || echo 0)" -lt 5 ] && kill -0 $writer; do sleep 0.05; done
    echo "@$2" >/dev/tty1
    sleep 1
    echo @start >/dev/tty1
    wait $writer && remount && files_are_whole "$1"
}

# Synced data and the names of files survive a crash of the server, and an open file goes on.
open_file_through_restart() (
    exec 4<>"$remote/held-open" && echo before >&4 && sync -f "$remote/held-open" && echo @kill >/dev/tty1 && sleep 1 &&
        echo @start >/dev/tty1 && echo after >&4 && exec 4>&- && remount && [ "$(cat "$remote/held-open")" = "$(printf 'before\nafter')" ]
)

check mounts mount_volume work "$remote"
check opens-four-connections four_connections
check copies-a-source-tree copy_tree
check keeps-the-tree-after-a-remount tree_after_remount
check unpacks-and-removes-a-tree tar_round_trip
check builds-a-program build_program
check keeps-odd-names names
check renames renames
check links links
check special-files special_files
check sparse-files sparse
check permissions permissions
check reads-an-open-file-after-chmod open_after_chmod
check passes-the-set-group-bit-on set_group_bit
check honours-access-lists lists
check hands-default-lists-on default_lists
check knows-more-than-sixteen-groups many_groups
check takes-set-id-bits-away set_id_bits
check sets-times-for-who-may sets_times
check protects-names-in-sticky-directories sticky
check keeps-times-to-the-nanosecond times
check unlinks-an-open-file open_unlinked
check creates-exclusively exclusive_create
check appends append
check lists-a-big-directory big_directory
check keeps-a-big-file big_file
check direct-and-synchronous-writes direct_writes
check mapped-memory mapped_memory
check shows-changes-on-close close_to_open
check shows-and-changes-the-quota shows_quota
check tells-the-tools-of-the-client statistics
mount_volume small /mnt/small
check keeps-to-the-quota keeps_quota
mount_volume public /mnt/public
check squashes-root squashes_root
mount_volume readonly /mnt/readonly
check serves-read-only read_only
check refuses-strangers-and-unknown-volumes refuses_strangers
check goes-on-through-a-restart through restart terminate
check goes-on-through-a-crash through crash kill
check an-open-file-goes-on-after-a-crash open_file_through_restart
check unmounts umount "$remote" /mnt/small /mnt/public /mnt/readonly
