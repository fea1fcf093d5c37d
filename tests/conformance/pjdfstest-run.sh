#!/bin/bash
# pjdfstest-run.sh PJDFSTEST FOLDER OTHER-FILE-SYSTEM RESULTS
#
# Runs pjdfstest in FOLDER. Tests of read-only file systems run again in a process of their own,
# whose result counts: others leave files open, and what has files open can't become read-only.
# Fails if either run did not come to its end.
set -u
for only in '' erofs; do
    # shellcheck disable=SC2086 # no pattern at all, or one
    RUST_BACKTRACE=0 "$1" -c "${0%/*}/pjdfstest.toml" -p "$2" -s "$3" $only
done >"$4" 2>&1 </dev/null
[ "$(grep -c '^Summary: ' "$4")" -eq 2 ]
