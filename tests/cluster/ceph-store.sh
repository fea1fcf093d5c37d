#!/bin/bash
# The store on CephFS against a small cluster of its own (ceph.py): brings it up, runs the tests in
# crates/store/tests/ceph, takes it down, and prints results in the form of the Test Anything
# Protocol.
#
# CEPH_TESTS names the built tests; without it they are built. Those of another package, which have
# the name `ceph` too, are chosen by CEPH_PACKAGE (weir-store). Needs root, python3, unshare and
# setpriv, and the packages of Ceph that ceph.py names. The cluster lives in network and process
# namespaces of its own, so that another Ceph on the machine is out of reach, and ends with this
# script however that ends. Its files lie below TMPDIR.
set -u
here=$(dirname "$(realpath -e "$0")")

# In the namespaces, with a directory and the tests.
if [ "${1:-}" = inside ]; then
    ip link set lo up || exit 1
    # A process 1 that waits for its child and passes its exit code on.
    OSDS=1 SIZE=1 "$here/ceph.py" run "$2" -- "$0" cluster "$3" &
    wait $!
    exit
fi

# On the cluster, with the tests: those that end daemons come last, one at a time.
if [ "${1:-}" = cluster ]; then
    code=0
    timeout --kill-after=5 600 "$2" --skip=faults:: --color=never || code=$?
    timeout --kill-after=5 600 "$2" faults:: --test-threads=1 --color=never || code=$?
    exit $code
fi

built() {
    cargo test --package="${CEPH_PACKAGE:-weir-store}" --features=ceph --test=ceph --no-run --locked --quiet \
        --message-format=json | python3 -c '
import json, sys
for line in sys.stdin:
    made = json.loads(line)
    if made.get("executable") and made["target"]["name"] == "ceph":
        print(made["executable"])'
}

tests=${CEPH_TESTS:-$(built)}
tests=$(realpath -e "$tests") || { echo "not ok - the tests are built"; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/weir-ceph.XXXXXX") || exit 1
inside=''

finish() {
    # With the process that waits, all that are in its namespaces end.
    [ -z "$inside" ] || { kill -KILL "$inside" && wait "$inside"; } 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 143' INT TERM HUP

setpriv --pdeathsig KILL unshare --net --mount --pid --fork --kill-child --mount-proc -- \
    "$0" inside "$work/cluster" "$tests" >"$work/out" 2>"$work/complaints" </dev/null &
inside=$!
code=0
wait "$inside" || code=$?
inside=''

awk '
    /^test .* \.\.\. / {
        name = $2
        if ($NF == "ok") print "ok - " name
        else if ($NF == "ignored") print "ok - " name " # SKIP"
        else print "not ok - " name
        next
    }
    /^test result:/ { failed = 0; print "# " $0 }
    /^failures:/ { failed = 1 }
    failed { print "# " $0 }
' "$work/out"
if [ $code -ne 0 ] && ! grep -q '^test .* FAILED$' "$work/out"; then
    echo "not ok - the tests ran to their end"
    echo "# they ended with code $code"
fi
[ $code -eq 0 ] || sed 's/^/# /' "$work/complaints"
exit $code
