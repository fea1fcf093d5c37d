# The same commands here and in CI. `make` alone lists them.

FUZZ_SECONDS ?= 3600
FUZZ_JOBS ?= 1
FUZZ_OUT ?= docs/fuzz.md
DEMO_OUT ?= target/demo
CLUSTER_DEMO_OUT ?= target/cluster-demo
CLUSTER_DEMO_MIBPS ?= 2
PEERS_OUT ?= docs/performance
KILLS ?= 1000
CUTS ?= 100
HOSTILE_CASES ?= 100000
CLIENT_COST_OUT ?= docs/performance
CRASH_OUT ?= docs/crash
DEATHS ?= 100
OTHERS ?= 20
CLUSTER_CRASH_OUT ?= docs/cluster-crash
UPGRADE_FROM ?= 58a6f840
CLUSTER_UPGRADE_OUT ?= target/cluster-upgrade
CLUSTER_PEERS_OUT ?= docs/performance
MANY_OUT ?= docs/performance
LIVE_OUT ?= docs/performance
WIDE_OUT ?= docs/performance
CACHE_OUT ?= docs/performance
REPLAY_OUT ?= docs/performance/replay
VDBENCH_OUT ?= target/vdbench-hosts
PAIRS_OUT ?= target/pairs
AGREE_PATH ?= target/agree

.PHONY: help build demo test check bench peers cache crash client-cost conformance usage fuzz wide many live deb replay agree published fio-examples hostile vdbench-hosts load-kinds pairs cluster-demo cluster-faults cluster-crash cluster-upgrade cluster-peers smb-cephfs

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

build: ## the program, and its debug symbols in a file of their own (target/dist/weir, weir.debug)
	cargo build --release --locked --package weir-weir
	mkdir -p target/dist
	objcopy --only-keep-debug target/release/weir target/dist/weir.debug
	cd target/dist && objcopy --strip-unneeded --add-gnu-debuglink=weir.debug ../release/weir weir
	@ls -lh target/dist

demo: ## build, then show contracts of every model kept under load, over NFS and SMB (about three minutes; target/demo)
	cargo build --release --locked
	target/release/weir-lab demo --out $(DEMO_OUT)

cluster-demo: ## build, then show a cluster under load while parts of it die: three gateways, etcd, Ceph (needs root; about three minutes; target/cluster-demo)
	cargo xtask preflight cluster
	cargo build --release --locked --package weir-weir --features cluster
	cargo build --release --locked --package weir-cluster-lab
	target/release/weir-cluster-lab demo --out $(CLUSTER_DEMO_OUT) --mibps $(CLUSTER_DEMO_MIBPS)

test: ## everything CI runs: checks, unit and property tests, fuzzing, real clients
	CARGO_INCREMENTAL=0 cargo xtask test

check: ## the fast part: formatting, lints, docs, licences, house rules
	cargo xtask check

deb: ## the Debian package (target/debian)
	cargo xtask deb

bench: ## microbenchmarks (the gate's cost per admission)
	cargo bench --workspace --locked

peers: ## Weir beside NFS-Ganesha, smbd, a bare loop and, with BEFORE=, an earlier weir (needs root; docs/performance)
	cargo xtask preflight peers
	cargo build --release --locked
	target/release/weir-lab peers --out $(PEERS_OUT) $(if $(BEFORE),--before $(BEFORE))

cache: ## the metadata cache on and off, on warm and cold ext4 and XFS (needs root; CACHE=; docs/performance)
	cargo build --release --locked
	target/release/weir-lab cache --out $(CACHE_OUT) $(CACHE)

crash: ## KILLS kills in each durability mode, CUTS power cuts on each file system (needs root; docs/crash)
	cargo xtask preflight
	cargo build --release --locked
	target/release/weir-lab crash --kills $(KILLS) --cuts $(CUTS) --files 0,1000,10000,100000 --out $(CRASH_OUT)

cluster-faults: ## each part of a cluster fails once, under load (needs root; about ten minutes)
	cargo xtask preflight cluster
	cargo build --release --locked --package weir-weir --features cluster
	cargo build --release --locked --package weir-cluster-lab
	target/release/weir-cluster-lab faults

cluster-crash: ## DEATHS ends of gateways of each kind, OTHERS of each other fault of a cluster, under load (needs root; docs/cluster-crash)
	cargo xtask preflight cluster
	cargo build --release --locked --package weir-weir --features cluster
	cargo build --release --locked --package weir-cluster-lab
	target/release/weir-cluster-lab faults --deaths $(DEATHS) --rounds $(OTHERS) --bars --out $(CLUSTER_CRASH_OUT) --commit $(shell git rev-parse --short HEAD)

cluster-upgrade: ## the last landed version (UPGRADE_FROM=), this one and one after it in one cluster, under load, forward and back (needs root; target/cluster-upgrade)
	cargo xtask preflight cluster
	test -d target/upgrade/source || git worktree add --force --detach target/upgrade/source $(UPGRADE_FROM)
	git -C target/upgrade/source checkout --quiet --detach $(UPGRADE_FROM)
	cd target/upgrade/source && cargo build --release --locked --package weir-weir --features cluster --target-dir ../from
	WEIR_NEXT_VERSION=1 cargo build --release --locked --package weir-weir --features cluster --target-dir target/upgrade/next
	cargo build --release --locked --package weir-weir --features cluster
	cargo build --release --locked --package weir-cluster-lab
	target/release/weir-cluster-lab upgrade --bars --out $(CLUSTER_UPGRADE_OUT) --from target/upgrade/from/release/weir --from-commit $(UPGRADE_FROM) --next target/upgrade/next/release/weir --commit $(shell git rev-parse --short HEAD)

cluster-peers: ## a gateway on CephFS beside libcephfs itself and NFS-Ganesha, and a model of larger clusters (needs root and 20 GiB of memory; a quarter of an hour; docs/performance)
	cargo xtask preflight cluster-peers
	cargo build --release --locked --package weir-weir --features cluster
	cargo build --release --locked --package weir-cluster-lab --features peers
	target/release/weir-cluster-lab peers --out $(CLUSTER_PEERS_OUT) --commit $(shell git rev-parse --short HEAD)

client-cost: ## what an operation costs weir bench and other NFS clients in user space (docs/performance)
	cargo build --release --locked
	tests/campaigns/client-cost/run.py --out $(CLIENT_COST_OUT)

conformance: ## pjdfstest over the Linux kernel's client, beside NFS-Ganesha (needs root; docs/conformance.md)
	cargo xtask conformance

smb-cephfs: ## smbclient, smbprotocol and smbtorture against a gateway with volumes on CephFS (needs root; docs/conformance.md)
	cargo xtask preflight smb-cephfs
	cargo build --profile test --locked --package weir-weir --features cluster
	WEIR=target/debug/weir SMB_PEER=weir-cephfs tests/clients/smbclient.sh
	WEIR=target/debug/weir SMB_PEER=weir-cephfs tests/clients/smbprotocol.sh
	WEIR=target/debug/weir SMB_PEER=weir-cephfs tests/conformance/smbtorture.sh

usage: ## usage against a model, 10 million random operations each on ext4 and XFS (needs root)
	WEIR_USAGE_OPERATIONS=10000000 cargo test --release -p weir-store --test store -- usage::exact --nocapture

hostile: ## what hostile clients do to gates and verdicts, HOSTILE_CASES histories in virtual time
	WEIR_HOSTILE_CASES=$(HOSTILE_CASES) cargo test --release --locked -p weir-server --lib -- engine::hostile --nocapture

fuzz: ## every fuzz target, or those of FUZZ_TARGETS=, for FUZZ_SECONDS each, FUZZ_JOBS at the same time (docs/fuzz.md)
	cargo xtask fuzz --seconds $(FUZZ_SECONDS) $(FUZZ_TARGETS:%=--target %) --jobs $(FUZZ_JOBS) --out $(FUZZ_OUT)

many: ## a server of 10,000 volumes, 1,000 of them at their limits (docs/performance)
	cargo build --release --locked
	target/release/weir-lab many --out $(MANY_OUT)

live: ## shared pools, and buckets of credits drained and refilled, watched live (eight minutes; LIVE=--full: three hours; docs/performance)
	cargo build --release --locked
	target/release/weir-lab live --out $(LIVE_OUT) $(LIVE)

replay: ## the published tests against Weir and NFS-Ganesha, in turns (needs root; REPLAY=--only NAME; docs/performance/replay)
	cargo xtask preflight peers
	cargo build --release --locked
	target/release/weir-lab replay --out $(REPLAY_OUT) $(REPLAY)

agree: ## our load generator beside the real fio, by turns (AGREE_PATH=; AGREE="--throttle 2000": a device of its own, as root; docs/bench-languages.md)
	cargo build --release --locked
	mkdir -p $(AGREE_PATH)
	target/release/weir-lab agree $(AGREE_PATH) $(AGREE)

published: ## the published parameter files and command lines, as they are, against the fixtures (PUBLISHED=DIRECTORY; docs/bench-catalogue.md)
	WEIR_PUBLISHED=$(abspath $(PUBLISHED)) cargo test -p weir-scenario --test published -- --ignored published_texts

vdbench-hosts: ## the published Vdbench files, as they are, from 24 machines on six volumes (needs root; PUBLISHED=DIRECTORY; docs/performance)
	cargo build --release --locked
	WEIR=target/release/weir tests/campaigns/vdbench-hosts.sh $(abspath $(PUBLISHED)) $(VDBENCH_OUT)

pairs: ## pairs of published figures on this machine: caches, nconnect, metadata cache (needs root; PAIRS=; 40 minutes; docs/performance)
	cargo build --release --locked
	WEIR=target/release/weir tests/campaigns/pairs.sh $(PAIRS_OUT)

load-kinds: ## five made loads, and what weir volume why says of each (three minutes; needs jq; docs/performance)
	cargo build --release --locked
	WEIR=target/release/weir tests/campaigns/load-kinds.sh

fio-examples: ## the example job files of fio 3.33: which are read, and why others are not (FIO_EXAMPLES=DIRECTORY; docs/bench-languages.md)
	WEIR_FIO_EXAMPLES=$(abspath $(FIO_EXAMPLES)) cargo test -p weir-scenario --test published -- --ignored examples_of_fio

wide: ## a directory of a million entries on ext4 and XFS, over NFS and SMB (needs root; docs/performance)
	cargo build --release --locked
	target/release/weir-lab wide --out $(WIDE_OUT)
