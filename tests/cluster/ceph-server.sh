#!/bin/bash
# A gateway that serves volumes on CephFS, against a small cluster of its own: the test in
# crates/server/tests/ceph. Everything else is as in ceph-store.sh.
CEPH_PACKAGE=weir-server exec "$(dirname "$(realpath -e "$0")")/ceph-store.sh"
