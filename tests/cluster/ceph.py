#!/usr/bin/env python3
"""A small Ceph cluster on this machine, for tests: a monitor, a manager, three OSDs on sparse files
and a metadata server with one CephFS, all on loopback and all below one directory.

    ceph.py up DIRECTORY                 start it; DIRECTORY must be missing or empty
    ceph.py down DIRECTORY               stop it; the files stay
    ceph.py run DIRECTORY -- COMMAND...  start it, run COMMAND with WEIR_CEPH_CONF set, stop it and
                                         remove DIRECTORY; the exit code is that of COMMAND
    ceph.py kill DIRECTORY DAEMON        end a daemon at once, such as osd.0; an error if it does not run
    ceph.py start DIRECTORY DAEMON       start one that has ended; it may not be ready yet
    ceph.py replace DIRECTORY OSD        start an OSD that has ended with an empty disk
    ceph.py active DIRECTORY             print the metadata server that serves, such as mds.a
    ceph.py whole DIRECTORY              wait until all daemons serve and all data has its copies
    ceph.py tell DIRECTORY PREFIX [NAME=VALUE...]
                                         send the monitors a command, and print their answer

Daemons are mon.a, mgr.x, osd.0 and mds.a, and those that follow.

Needs root and, of Debian 12, ceph-mon, ceph-mgr, ceph-osd, ceph-mds, ceph-common and librados2.
Clients read DIRECTORY/ceph.conf. The pid of each daemon is in DIRECTORY/run/NAME.pid, so that a test
can end one of them. Environment: MONS (1), OSDS (3) of OSD_GIB (8) each, in sparse files that reach that
size with time, SIZE (2) copies of the data, MDS (1) metadata servers, of which all but one stand by,
MDS_GRACE (15), seconds of silence after which one of them is replaced,
CEPH_ADDRESS (127.0.0.1), an address of this machine, if clients on other machines are to reach it.
"""

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid

ADDRESS = os.environ.get("CEPH_ADDRESS", "127.0.0.1")
WAIT_SECONDS = 120
PROGRAMS = ["ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "ceph-authtool", "monmaptool"]

# Small, quick to start and to settle; nothing here is for data that matters.
CONFIGURATION = """\
[global]
fsid = {fsid}
mon_host = {monitors}
public_addr = {address}
cluster_addr = {address}
auth_cluster_required = cephx
auth_service_required = cephx
auth_client_required = cephx
keyring = {directory}/keyring
run_dir = {directory}/run
admin_socket = {directory}/run/$name.$pid.asok
log_file = {directory}/log/$name.log
crash_dir = {directory}/log
ms_bind_msgr1 = false
ms_bind_ipv6 = false
osd_crush_chooseleaf_type = 0
osd_pool_default_size = {size}
osd_pool_default_min_size = 1
osd_pool_default_pg_autoscale_mode = off
{classes}
[client]
log_file =
admin_socket =

[mon]
mds_beacon_grace = {grace}
# Monitors that looked longer ago than grace less interval give every server its grace anew.
mds_beacon_interval = {interval}
mon_data = {directory}/mon.$id
mon_cluster_log_file = {directory}/log/cluster.log
mon_data_avail_crit = 1
mon_data_avail_warn = 2
mon_max_pg_per_osd = 1000
mon_osd_adjust_heartbeat_grace = false
mon_osd_down_out_interval = 600
mon_osd_min_down_reporters = 1
mon_tick_interval = 1
paxos_min_wait = 0.02
paxos_propose_interval = 0.05

[mgr]
mgr_stats_period = 1
mgr_tick_period = 1
mgr_data = {directory}/mgr
mgr_initial_modules =

[mds]
# Else each session holds 500 numbers of files, and when it ends by force, as many objects are deleted.
mds_client_delegate_inos_pct = 0
mds_beacon_interval = {interval}
mds_data = {directory}/mds.$id
mds_cache_memory_limit = 128Mi

[osd]
osd_data = {directory}/osd.$id
osd_objectstore = bluestore
osd_heartbeat_grace = 5
osd_heartbeat_interval = 1
osd_memory_target = 939524096
# The pause of 0.1 s before each object of a recovery is for real disks.
osd_recovery_sleep_hdd = 0
bluestore_block_size = {osd_gib}Gi
bluestore_cache_autotune = false
bluestore_cache_size = 64Mi
bluestore_fsck_quick_fix_on_mount = false
"""


def end(message):
    sys.exit(f"ceph.py: {message}")


class Monitors:
    """Commands to the monitors through librados; the program `ceph` takes half a second for each."""

    def __init__(self, conf):
        self.rados = ctypes.CDLL("librados.so.2")
        self.cluster = ctypes.c_void_p()
        self.check("rados_create", ctypes.byref(self.cluster), b"admin")
        self.check("rados_conf_read_file", self.cluster, conf.encode())
        self.check("rados_conf_set", self.cluster, b"client_mount_timeout", b"60")
        self.check("rados_connect", self.cluster)

    def check(self, name, *arguments):
        code = getattr(self.rados, name)(*arguments)
        if code < 0:
            end(f"{name}: {os.strerror(-code)}")

    def command(self, prefix, **arguments):
        text = json.dumps({"prefix": prefix, "format": "json", **arguments}).encode()
        commands = (ctypes.c_char_p * 1)(text)
        out, words = ctypes.c_void_p(), ctypes.c_void_p()
        out_bytes, words_bytes = ctypes.c_size_t(), ctypes.c_size_t()
        code = self.rados.rados_mon_command(
            self.cluster, commands, ctypes.c_size_t(1), None, ctypes.c_size_t(0),
            ctypes.byref(out), ctypes.byref(out_bytes),
            ctypes.byref(words), ctypes.byref(words_bytes))
        answer = ctypes.string_at(out, out_bytes.value) if out else b""
        said = ctypes.string_at(words, words_bytes.value) if words else b""
        for buffer in (out, words):
            if buffer:
                self.rados.rados_buffer_free(buffer)
        if code < 0:
            end(f"{prefix}: {os.strerror(-code)} {said.decode(errors='replace')}")
        return json.loads(answer) if answer.strip() else None

    def wait(self, what, ready):
        deadline = time.monotonic() + WAIT_SECONDS
        while not ready():
            if time.monotonic() > deadline:
                end(f"{what}: not within {WAIT_SECONDS} s")
            time.sleep(0.05)

    def close(self):
        self.rados.rados_shutdown(self.cluster)


def free_ports(count):
    """Ports on which nobody listens, no two alike."""
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind((ADDRESS, 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def letters(kind):
    """The names of as many daemons as the environment says: a, b and so on."""
    return [chr(ord("a") + i) for i in range(counted(kind, 1))]


def counted(name, usual):
    """The number that the environment gives under a name, from 1 to a million, or the usual one."""
    text = os.environ.get(name, "")
    try:
        given = type(usual)(text) if text else usual
    except ValueError:
        given = 0
    if not 1 <= given <= 10**6:
        end(f"{name}={text!r} is no number from 1 to 1000000")
    return given


def find(name, below="/usr/lib"):
    for directory, _, files in os.walk(below):
        if name in files:
            return directory
    return None


def keyring(directory, osds, mds):
    """One keyring with all keys: the monitor's own, which it also takes over, and those of clients."""
    path = f"{directory}/keyring"
    everything = ["mon", "allow *", "osd", "allow *", "mds", "allow *", "mgr", "allow *"]
    names = [("mon.", ["mon", "allow *"]), ("client.admin", everything), ("mgr.x", everything)]
    names += [(f"osd.{i}", ["mon", "profile osd", "osd", "allow *", "mgr", "profile osd"])
              for i in range(osds)]
    names += [(f"mds.{i}", ["mon", "profile mds", "osd", "allow *", "mds", "allow *",
                            "mgr", "profile mds"]) for i in mds]
    subprocess.run(["ceph-authtool", "--create-keyring", path], check=True, stdout=subprocess.DEVNULL)
    for name, caps in names:
        pairs = [part for kind, rights in zip(caps[::2], caps[1::2])
                 for part in ("--cap", kind, rights)]
        subprocess.run(["ceph-authtool", path, "--gen-key", "-n", name, *pairs], check=True,
                       stdout=subprocess.DEVNULL)


def keep_priority(pid):
    """Give the session of a daemon this process's nice value, which counts within one session alone
    where the kernel groups processes by sessions."""
    try:
        with open(f"/proc/{pid}/autogroup", "w", encoding="utf-8") as group:
            group.write(str(os.nice(0)))
    except OSError:
        pass  # No such groups, or the daemon has ended.


def start(directory, name):
    """Starts a daemon in a session of its own, so that a signal to the test does not end it."""
    kind, number = name.split(".")
    command = [f"ceph-{kind}", "-i", number]
    with open(f"{directory}/log/{name}.out", "ab") as out:
        daemon = subprocess.Popen(
            [*command, "-c", f"{directory}/ceph.conf", "-f"], stdin=subprocess.DEVNULL, stdout=out,
            stderr=out, start_new_session=True)
    keep_priority(daemon.pid)
    with open(f"{directory}/run/{name}.pid", "w", encoding="utf-8") as file:
        file.write(f"{daemon.pid}\n")


def up(directory):
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        end(f"{', '.join(missing)}: not installed")
    if os.path.isdir(directory) and os.listdir(directory):
        end(f"{directory} is not empty")
    osds, size = counted("OSDS", 3), counted("SIZE", 2)
    grace = counted("MDS_GRACE", 15.0)
    osd_gib = counted("OSD_GIB", 8)
    mons, mds = letters("MONS"), letters("MDS")
    for part in ["run", "log", "mgr", *[f"mon.{i}" for i in mons], *[f"osd.{i}" for i in range(osds)],
                 *[f"mds.{i}" for i in mds]]:
        os.makedirs(f"{directory}/{part}")
    fsid = str(uuid.uuid4())
    places = [f"[v2:{ADDRESS}:{port}/0]" for port in free_ports(len(mons))]
    classes, plugins = find("libcls_cephfs.so"), find("libceph_snappy.so")
    lines = f"osd_class_dir = {classes}\n" if classes else ""
    lines += f"plugin_dir = {os.path.dirname(plugins)}\n" if plugins else ""
    conf = f"{directory}/ceph.conf"
    with open(conf, "w", encoding="utf-8") as file:
        file.write(CONFIGURATION.format(
            fsid=fsid, address=ADDRESS, monitors=",".join(places), directory=directory, size=size,
            osd_gib=osd_gib, grace=grace, interval=min(1, grace / 8), classes=lines))
    keyring(directory, osds, mds)
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    monmap = f"{directory}/monmap"
    added = [part for i, place in zip(mons, places) for part in ("--addv", i, place)]
    subprocess.run(["monmaptool", "--create", "--fsid", fsid, *added, monmap], **quiet)
    ids = [str(uuid.uuid4()) for _ in range(osds)]
    making = [subprocess.Popen(
        ["ceph-osd", "-c", conf, "-i", str(i), "--mkfs", "--osd-uuid", ids[i], "--no-mon-config"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for i in range(osds)]
    for i in mons:
        subprocess.run(["ceph-mon", "-c", conf, "-i", i, "--mkfs", "--monmap", monmap,
                        "--keyring", f"{directory}/keyring"], **quiet)
        start(directory, f"mon.{i}")
    for number, maker in enumerate(making):
        if maker.wait() != 0:
            end(f"osd.{number} could not be made: see {directory}/log")
    settle(directory, conf, ids, mds)


def settle(directory, conf, ids, mds):
    """Starts everything but the monitor, makes the file system and waits until it can be used."""
    monitors = Monitors(conf)
    for number, osd in enumerate(ids):
        monitors.command("osd new", uuid=osd, id=number)
    for number in range(len(ids)):
        start(directory, f"osd.{number}")
    start(directory, "mgr.x")
    for name in mds:
        start(directory, f"mds.{name}")
    monitors.wait("the OSDs", lambda: monitors.command("osd stat")["num_up_osds"] == len(ids))
    for pool, groups in [("metadata", 8), ("data", 16)]:
        monitors.command("osd pool create", pool=pool, pg_num=groups)
    monitors.command("fs new", fs_name="weir", metadata="metadata", data="data")

    def active():
        dump = monitors.command("fs dump")
        servers = [info for fs in dump["filesystems"] for info in fs["mdsmap"]["info"].values()]
        return any(server["state"] == "up:active" for server in servers)

    monitors.wait("the metadata server", active)
    monitors.close()
    print(f"WEIR_CEPH_CONF={conf}", flush=True)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def kill(directory, names):
    """Ends daemons by the pids on record, and waits for that. Tests have no use for an orderly end.
    Returns the names of those that had ended before."""
    pids, idle = [], []
    for name in names:
        record = f"{directory}/run/{name}.pid"
        with open(record, encoding="utf-8") as file:
            pid = int(file.read())
        # A number that another process has by now is not ours to end.
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                ours = f"{directory}/ceph.conf".encode() in file.read()
        except FileNotFoundError:
            ours = False
        if ours:
            os.kill(pid, signal.SIGKILL)
            pids.append(pid)
        else:
            idle.append(name)
        os.unlink(record)
    deadline = time.monotonic() + 10
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    left = [pid for pid in pids if alive(pid)]
    if left:
        end(f"killed, and still there: {left}")
    return idle


def down(directory):
    run = f"{directory}/run"
    files = sorted(os.listdir(run)) if os.path.isdir(run) else []
    kill(directory, [file.removesuffix(".pid") for file in files if file.endswith(".pid")])


def daemons(directory, kind):
    return [name for name in sorted(os.listdir(directory)) if name.startswith(f"{kind}.")]


def replace(directory, name):
    """Starts an OSD that has ended as one with its number whose disk is empty."""
    number = int(name.removeprefix("osd."))
    monitors = Monitors(f"{directory}/ceph.conf")
    osds = {osd["osd"]: osd for osd in monitors.command("osd dump")["osds"]}
    monitors.close()
    shutil.rmtree(f"{directory}/{name}")
    os.makedirs(f"{directory}/{name}")
    subprocess.run(
        ["ceph-osd", "-c", f"{directory}/ceph.conf", "-i", str(number), "--mkfs", "--osd-uuid",
         osds[number]["uuid"], "--no-mon-config"],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    start(directory, name)


def active(directory):
    """Prints the metadata server that serves."""
    monitors = Monitors(f"{directory}/ceph.conf")
    dump = monitors.command("fs dump")
    monitors.close()
    infos = [info for fs in dump["filesystems"] for info in fs["mdsmap"]["info"].values()]
    print(*[f"mds.{info['name']}" for info in infos if info["state"] == "up:active"])


def whole(directory):
    """Waits until all daemons serve, no OSD counts as full, and all placement groups have all their
    copies, as they say since the last of their OSDs came up."""
    monitors = Monitors(f"{directory}/ceph.conf")
    servers = len(daemons(directory, "mds"))

    def osds_serve():
        osds = monitors.command("osd dump")["osds"]
        whole = all(osd["up"] and osd["in"] for osd in osds)
        return whole and not any("full" in state for osd in osds for state in osd["state"])

    def data_is_whole():
        since = {osd["osd"]: osd["up_from"] for osd in monitors.command("osd dump")["osds"]}
        dump = monitors.command("pg dump", dumpcontents=["pgs"])
        groups = dump.get("pg_map", dump)["pg_stats"]
        return all(group["state"].startswith("active+clean")
                   and int(group["reported_epoch"]) >= max(since[osd] for osd in group["up"])
                   for group in groups)

    def metadata_servers_serve():
        dump = monitors.command("fs dump")
        infos = [info for fs in dump["filesystems"] for info in fs["mdsmap"]["info"].values()]
        active = [info for info in infos if info["state"] == "up:active"]
        return len(active) == 1 and len(active) + len(dump["standbys"]) >= servers

    def monitors_agree():
        return len(monitors.command("quorum_status")["quorum"]) == len(daemons(directory, "mon"))

    monitors.wait("the monitors", monitors_agree)
    monitors.wait("the OSDs", osds_serve)
    monitors.wait("the metadata servers", metadata_servers_serve)
    monitors.wait("all copies of the data", data_is_whole)
    monitors.close()


def value(text):
    """A number as one, any other value as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def run(directory, command):
    made = not os.path.isdir(directory)
    try:
        up(directory)
        environment = {**os.environ, "WEIR_CEPH_CONF": f"{directory}/ceph.conf"}
        return subprocess.run(command, env=environment, check=False).returncode
    finally:
        down(directory)
        if made:
            shutil.rmtree(directory, ignore_errors=True)


def main(arguments):
    match arguments:
        case ["up", directory]:
            up(os.path.abspath(directory))
        case ["down", directory]:
            down(os.path.abspath(directory))
        case ["run", directory, "--", *command] if command:
            sys.exit(run(os.path.abspath(directory), command))
        case ["kill", directory, name]:
            directory = os.path.abspath(directory)
            if not os.path.exists(f"{directory}/run/{name}.pid") or kill(directory, [name]):
                end(f"{name} does not run")
        case ["start", directory, name]:
            start(os.path.abspath(directory), name)
        case ["replace", directory, name] if name.startswith("osd."):
            replace(os.path.abspath(directory), name)
        case ["active", directory]:
            active(os.path.abspath(directory))
        case ["whole", directory]:
            whole(os.path.abspath(directory))
        case ["tell", directory, prefix, *arguments]:
            monitors = Monitors(f"{os.path.abspath(directory)}/ceph.conf")
            pairs = (argument.split("=", 1) for argument in arguments)
            print(json.dumps(monitors.command(prefix, **{name: value(text) for name, text in pairs})))
            monitors.close()
        case _:
            end(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
