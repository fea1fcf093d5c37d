# Sourced by what runs pjdfstest in the sandbox, after suite.bash.

# The guest has this machine's accounts; pjdfstest wants a second ordinary user.
add_account() {
    cp /etc/passwd /etc/group "$work" &&
        echo 'tests:x:5001:5001::/nonexistent:/usr/sbin/nologin' >>"$work/passwd" &&
        echo 'tests:x:5001:' >>"$work/group" &&
        mount --bind "$work/passwd" /etc/passwd && mount --bind "$work/group" /etc/group
}

# How a guest mounts over NFSv3, without ports.
pjdfstest_options=vers=3,proto=tcp,mountproto=tcp,nolock,nconnect=4,hard
