#!/bin/bash
# Runs in the guest: smb-kernel-cases.sh REPOSITORY PASSWORD-OF-ANNA PASSWORD-OF-BEN [NFS-PORT]. Mounts
# the shares and works on them; with a port for NFS, compares with what the volume shows there.
set -u
repository=$1 nfs_port=${4:-}
declare -A password=([anna]=$2 [ben]=$3)
server=10.77.0.1
local=/local
mkdir -p "$local" /mnt/{plain,second,sealed,ben,readonly,none,nfs}

# shellcheck source=tap.bash
. "$repository/tests/clients/tap.bash"

# mount_share SHARE FOLDER USER [OPTIONS]: a connection and caches of its own.
mount_share() {
    PASSWD=${password[$3]} mount.cifs "//$server/$1" "$2" \
        -o "vers=3.1.1,username=$3,uid=0,gid=0,nosharesock,echo_interval=60${4:+,$4}"
}

# says OPTION FOLDER: the mount has it.
says() { grep " $2 cifs " /proc/mounts | tee /dev/stderr | grep -qE "[ ,]$1[ ,]"; }

mounts() {
    mount_share work /mnt/plain anna && mount_share work /mnt/second anna && mount_share work /mnt/sealed anna seal &&
        says vers=3.1.1 /mnt/plain && says seal /mnt/sealed && says 'rsize=[0-9]{7}' /mnt/plain
}

refuses() {
    refused mount_share closed /mnt/none anna && refused mount_share absent /mnt/none anna &&
        refuses_a_password && refused mount_share work /mnt/none anna vers=3.0 && refused mount_share work /mnt/none anna vers=2.1 &&
        refused mount_share work /mnt/none anna guest,sec=none
}

refuses_a_password() {
    local -A password=([anna]=wrong)
    refused mount_share work /mnt/none anna
}

# copy_tree FOLDER NAME: there, at once read by the other mount, and after a remount.
copy_tree() {
    cp -r "$local/tree" "$1/$2" && diff -r "$local/tree" "$1/$2"
}

seen_by_the_other() { diff -r "$local/tree" "/mnt/second/$1"; }

after_a_remount() {
    umount /mnt/plain && mount_share work /mnt/plain anna && diff -r "$local/tree" /mnt/plain/tree && diff -r "$local/tree" /mnt/plain/sealed-tree
}

# The same volume by the other protocol: names, contents, and sizes that du adds up.
seen_by_nfs() {
    mount -t nfs -o "vers=3,proto=tcp,port=$nfs_port,mountport=$nfs_port,mountproto=tcp,nolock,hard" "$server:/work" /mnt/nfs &&
        diff -r "$local/tree" /mnt/nfs/tree && diff -r "$local/tree" /mnt/nfs/sealed-tree &&
        cp -r "$local/tree" /mnt/nfs/nfs-tree && diff -r "$local/tree" /mnt/second/nfs-tree &&
        [ "$(cd /mnt/nfs && find . | LC_ALL=C sort | sha256sum)" = "$(cd /mnt/second && find . | LC_ALL=C sort | sha256sum)" ]
}

tar_round_trip() {
    tar -C /usr/include -cf - asm-generic | tar --no-same-owner --no-same-permissions -C /mnt/plain -xf - &&
        diff -r /usr/include/asm-generic /mnt/plain/asm-generic && rm -r /mnt/plain/asm-generic && gone /mnt/second/asm-generic
}

# A program of a dozen files, so that make and the compiler stat, read and write like in daily work.
write_sources() (
    mkdir "$1" && cd "$1" || return 1
    local i
    for i in $(seq 12); do
        printf '#include "all.h"\nint part%d(void) { return %d; }\n' "$i" "$i" >"part$i.c"
    done
    { for i in $(seq 12); do echo "int part$i(void);"; done; } >all.h
    {
        printf '#include <stdio.h>\n#include "all.h"\nint main(void) { int sum = 0;\n'
        for i in $(seq 12); do echo "sum += part$i();"; done
        printf 'printf("%%d\\n", sum); return 0; }\n'
    } >main.c
    printf 'CFLAGS = -O1\nprogram: main.o libparts.a\n\t$(CC) -o $@ main.o libparts.a\nlibparts.a: $(patsubst %%.c,%%.o,$(wildcard part*.c))\n\tar rcD $@ $^\n' >Makefile
)

# build_program FOLDER: the same there as here, and run from there.
build_program() {
    [ -e "$local/program" ] || { write_sources "$local/program" && make -s -C "$local/program"; } || return 1
    write_sources "$1/program" && make -s -j2 -C "$1/program" && [ "$("$1/program/program")" = 78 ] &&
        cmp "$local/program/libparts.a" "$1/program/libparts.a" && make -C "$1/program" | grep -q 'up to date' && rm -r "$1/program"
}

names() (
    cd /mnt/plain && mkdir names && cd names || return 1
    local long name
    long=$(printf 'n%.0s' $(seq 255))
    for name in 'with space' '-rf' 'ünïcödé' '日本' 'a:b' '*?' 'less<more>' 'quo"te' 'bar|bar' '.hidden' "$long"; do
        echo "$name" >"./$name" && [ "$(cat "./$name")" = "$name" ] && [ "$(cat "/mnt/second/names/$name")" = "$name" ] || { echo "$name"; return 1; }
    done
    [ "$(ls -A | wc -l)" -eq 11 ] && [ "$(ls -A /mnt/second/names | wc -l)" -eq 11 ] && refused touch "x$long" && cd .. && rm -r names
)

renames() (
    cd /mnt/plain && mkdir -p renames/{a,b,full} && cd renames && echo 1 >one && echo 2 >two && touch full/x &&
        mv one two && [ "$(cat two)" = 1 ] && ! [ -e one ] && mv two a/three && mv a b/ &&
        [ "$(cat b/a/three)" = 1 ] && [ "$(cat /mnt/second/renames/b/a/three)" = 1 ] && refused mv -T b full && refused mv b b/a/ && cd .. && rm -r renames
)

# Each mount has a cache of its own, and each sees what the other has closed.
coherent() {
    local i
    for i in $(seq 20); do
        echo "first $i" >/mnt/plain/shared && [ "$(cat /mnt/second/shared)" = "first $i" ] && [ "$(cat /mnt/sealed/shared)" = "first $i" ] &&
            echo "second $i and more" >/mnt/second/shared && [ "$(cat /mnt/plain/shared)" = "second $i and more" ] &&
            echo "$i" >>/mnt/sealed/shared && [ "$(tail -n 1 /mnt/plain/shared)" = "$i" ] || return 1
    done
    rm /mnt/plain/shared && refused cat /mnt/second/shared
}

appends_in_turns() {
    local i
    for i in $(seq 100); do
        echo "$i" >>/mnt/plain/turns && echo "$i" >>/mnt/second/turns || return 1
    done
    seq 100 | sed p | cmp - /mnt/sealed/turns && rm /mnt/plain/turns
}

# Locks of ranges are the server's, so that they hold between the mounts.
locks() (
    cd /mnt/plain && echo x >locked && exec 3<>locked && flock -n 3 && refused flock -n /mnt/second/locked true &&
        exec 3>&- && flock -w 30 /mnt/second/locked true && rm locked
)

exclusive_create() (
    cd /mnt/plain && (set -C; echo first >lockfile) && refused bash -c 'set -C; echo second >/mnt/second/lockfile' &&
        [ "$(cat lockfile)" = first ] && rm lockfile
)

# gone PATH: the name is gone, once the attributes that a mount keeps for a second have lapsed.
gone() {
    for _ in $(seq 50); do
        [ -e "$1" ] || return 0
        sleep 0.1
    done
    echo "$1 is still there"
    return 1
}

big_directory() (
    cd /mnt/plain && mkdir many && cd many && seq 1000 | xargs touch && cmp <(ls | sort -n) <(seq 1000) && cmp <(ls /mnt/second/many | sort -n) <(seq 1000) &&
        cd .. && rm -r many && gone /mnt/second/many
)

big_file() {
    dd if=/dev/urandom of="$local/big" bs=1M count=64 status=none && dd if="$local/big" of="$1/big" bs=1M conv=fsync status=none &&
        cmp "$local/big" /mnt/second/big && dd if=/mnt/second/big bs=4k skip=1000 count=500 iflag=direct status=none |
        cmp - <(dd if="$local/big" bs=4k skip=1000 count=500 status=none) && dd if="$local/big" of="$1/direct" bs=1M count=16 oflag=direct status=none &&
        cmp -n 16777216 "$local/big" /mnt/second/direct && rm "$1/big" "$1/direct"
}

sparse() (
    cd /mnt/plain && truncate -s 1G sparse && [ "$(stat -c %s /mnt/second/sparse)" = 1073741824 ] && printf end | dd of=sparse bs=1 seek=1073741821 conv=notrunc status=none &&
        [ "$(tail -c 3 /mnt/second/sparse)" = end ] && fallocate -p -o 0 -l 65536 sparse && cmp -n 1048576 /mnt/second/sparse /dev/zero &&
        truncate -s 5 sparse && [ "$(stat -c %s sparse)" = 5 ] && rm sparse
)

# The server copies: the client asks it for chunks.
copies_on_the_server() {
    dd if="$local/big" of=/mnt/plain/from bs=1M count=32 status=none && cp --reflink=never /mnt/plain/from /mnt/plain/to && cmp -n 33554432 "$local/big" /mnt/second/to &&
        rm /mnt/plain/from /mnt/plain/to
}

mapped_memory() {
    cc -o "$local/mapped" -x c - <<'C' && "$local/mapped" /mnt/plain/mapped && [ "$(tail -c +4097 /mnt/second/mapped | head -c 5)" = hello ] && rm /mnt/plain/mapped
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

open_unlinked() (
    cd /mnt/plain && exec 3<>unlinked && echo before >&3 && rm unlinked && refused cat /mnt/second/unlinked && echo after >&3 &&
        exec 3>&- && refused cat /mnt/second/unlinked && refused cat unlinked && [ -z "$(find . -name "*unlinked*")" ]
)

times() (
    cd /mnt/plain && touch -d '1999-12-31 23:59:59.1234567 UTC' old && [ "$(stat -c %.7Y /mnt/second/old)" = 946684799.1234567 ] && touch -d '2100-01-01 UTC' old &&
        [ "$(stat -c %Y old)" = 4102444800 ] && rm old
)

# On one connection there may be several users, and each has its own rights.
permissions() {
    mount_share work /mnt/ben ben && echo mine >/mnt/ben/of-ben && [ "$(cat /mnt/plain/of-ben)" = mine ] && refused sh -c 'echo no >>/mnt/plain/of-ben' &&
        [ "$(cat /mnt/ben/of-ben)" = mine ] && rm /mnt/ben/of-ben && umount /mnt/ben
}

read_only() {
    mount_share readonly /mnt/readonly anna && ls /mnt/readonly && refused touch /mnt/readonly/file && umount /mnt/readonly
}

shows_space() { [ "$(df -B1 --output=size /mnt/plain | tail -n 1)" -gt 0 ] && [ "$(df -B1 --output=avail /mnt/plain | tail -n 1)" -gt 0 ]; }

cp -r "$repository/crates" "$local/tree"
check mounts-plain-and-sealed mounts
check refuses-logins-shares-and-older-dialects refuses
check copies-a-source-tree copy_tree /mnt/plain tree
check other-mount-sees-the-tree seen_by_the_other tree
echo @at-rest-tree
check copies-a-source-tree-sealed copy_tree /mnt/sealed sealed-tree
check other-mount-sees-the-sealed-tree seen_by_the_other sealed-tree
echo @at-rest-sealed-tree
check keeps-the-trees-after-a-remount after_a_remount
[ -z "$nfs_port" ] || check shows-the-same-by-nfs seen_by_nfs
check unpacks-and-removes-a-tree tar_round_trip
check builds-a-program build_program /mnt/plain
check builds-a-program-sealed build_program /mnt/sealed
check keeps-odd-names names
check renames renames
check two-mounts-are-coherent coherent
check appends-in-turns appends_in_turns
check locks-between-mounts locks
check creates-exclusively exclusive_create
check lists-a-big-directory big_directory
check keeps-a-big-file big_file /mnt/plain
check keeps-a-big-file-sealed big_file /mnt/sealed
check sparse-files sparse
check copies-on-the-server copies_on_the_server
check mapped-memory mapped_memory
check unlinks-an-open-file open_unlinked
check keeps-times times
check honours-permissions permissions
check serves-read-only read_only
check shows-the-space shows_space
check unmounts umount /mnt/plain /mnt/second /mnt/sealed
