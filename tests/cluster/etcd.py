#!/usr/bin/env python3
"""Starts and ends an etcd of three members on this machine, and what a test does to its members.

    etcd.py up [DIR]                  start one in DIR, which is empty or new; prints DIR and the endpoints
    etcd.py down DIR                  end all of it, and remove DIR
    etcd.py hold                      up in a new directory; down as soon as the standard input ends
    etcd.py leader DIR                print the member that leads
    etcd.py signal DIR MEMBER SIGNAL  send STOP, CONT or KILL to a member: 0, 1, 2, or all
    etcd.py start DIR MEMBER          start a member that has ended, or all, with the data that they have

Each one has loopback addresses of its own, 127.X.Y.1 to 127.X.Y.3, so that any number of them run at
the same time. `up` and `hold` print two lines: DIR, and the endpoints as HOST:PORT,HOST:PORT,HOST:PORT.
ETCD names the program, else it is the `etcd` in PATH (Debian: etcd-server). ETCD_NET, such as
10.0.0, takes the addresses 10.0.0.1 to 10.0.0.3 of this machine instead. The ports are those that
etcd uses by default. An etcd answers every member's health check when `up` returns."""

import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

MEMBERS = 3
CLIENTS, PEERS = 2379, 2380
# Seconds until an etcd has to be healthy, until a leader is elected, until a member has ended.
START, ELECT, END = 60, 30, 10
# Milliseconds. An election on one machine takes less than a second, and a busy one causes none.
HEARTBEAT, ELECTION = 100, 1000


def fail(why):
    sys.exit(f"etcd.py: {why}")


def free_net():
    """Three addresses on whose ports nobody listens."""
    for _ in range(100):
        net = f"127.{random.randint(1, 254)}.{random.randint(0, 254)}"
        try:
            for member in range(MEMBERS):
                for port in (CLIENTS, PEERS):
                    with socket.socket() as probe:
                        probe.bind((f"{net}.{member + 1}", port))
            return net
        except OSError:
            continue
    return fail("no loopback addresses are free")


def keep_priority(pid):
    """Give the session of a daemon this process's nice value, which counts within one session alone
    where the kernel groups processes by sessions."""
    try:
        with open(f"/proc/{pid}/autogroup", "w", encoding="utf-8") as group:
            group.write(str(os.nice(0)))
    except OSError:
        pass  # No such groups, or the daemon has ended.


class Etcd:
    """The etcd in a directory."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory).resolve()
        try:
            self.net = (self.directory / "net").read_text().strip()
        except OSError:
            fail(f"{directory} is not one that `etcd.py up` made")

    @classmethod
    def create(cls, directory):
        directory = pathlib.Path(directory or tempfile.mkdtemp(prefix="weir-etcd-"))
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            fail(f"{directory} is not empty")
        (directory / "net").write_text(os.environ.get("ETCD_NET") or free_net())
        return cls(directory)

    def host(self, member):
        return f"{self.net}.{member + 1}"

    def endpoints(self):
        return ",".join(f"{self.host(member)}:{CLIENTS}" for member in range(MEMBERS))

    def url(self, member, port):
        return f"http://{self.host(member)}:{port}"

    def data(self, member):
        return self.directory / f"member{member}"

    def pid(self, member):
        """The process of a member, if it runs: never a later one with its number."""
        try:
            pid = int((self.directory / f"{member}.pid").read_text())
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, ValueError):
            return None
        ours = os.fsencode(self.data(member)) in words
        return pid if ours and state not in "ZX" else None

    def start(self, member):
        if self.pid(member):
            fail(f"member {member} runs")
        initial = ",".join(f"member{m}={self.url(m, PEERS)}" for m in range(MEMBERS))
        words = [
            os.environ.get("ETCD", "etcd"), "--name", f"member{member}", "--data-dir", str(self.data(member)),
            "--listen-peer-urls", self.url(member, PEERS), "--initial-advertise-peer-urls", self.url(member, PEERS),
            "--listen-client-urls", self.url(member, CLIENTS), "--advertise-client-urls", self.url(member, CLIENTS),
            "--initial-cluster", initial, "--initial-cluster-state", "new", "--initial-cluster-token", self.net,
            "--heartbeat-interval", str(HEARTBEAT), "--election-timeout", str(ELECTION),
            "--logger", "zap", "--log-level", "warn",
        ]
        with open(self.directory / f"{member}.log", "ab") as log:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        keep_priority(process.pid)
        (self.directory / f"{member}.pid").write_text(str(process.pid))

    def ask(self, member, path, body=None, *, seconds):
        # Only here: loading it takes longer than all the rest, of a processor that others need.
        import urllib.request

        request = urllib.request.Request(self.url(member, CLIENTS) + path, body)
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            return json.load(answer)

    def healthy(self, member):
        try:
            return self.ask(member, "/health", seconds=2)["health"] == "true"
        except (OSError, ValueError, KeyError):
            return False

    def up(self):
        for member in range(MEMBERS):
            self.start(member)
        until = time.monotonic() + START
        while not all(self.healthy(member) for member in range(MEMBERS)):
            gone = [member for member in range(MEMBERS) if not self.pid(member)]
            if gone or time.monotonic() > until:
                logs = "".join((self.directory / f"{m}.log").read_text()[-2000:] for m in gone or range(MEMBERS))
                self.down()
                fail(f"etcd does not start:\n{logs}")
            time.sleep(0.1)

    def leader(self):
        """The member that leads. Waits for an election that is under way."""
        until = time.monotonic() + ELECT
        while time.monotonic() < until:
            for member in range(MEMBERS):
                try:
                    status = self.ask(member, "/v3/maintenance/status", b"{}", seconds=1)
                except (OSError, ValueError):
                    continue
                if status.get("leader") == status["header"]["member_id"]:
                    return member
            time.sleep(0.05)
        return fail("no member leads")

    def signal(self, members, name):
        pids = [self.pid(member) or fail(f"member {member} does not run") for member in members]
        for pid in pids:
            os.kill(pid, getattr(signal, f"SIG{name}"))
        if name == "KILL":
            for member in members:
                self.wait(member)

    def wait(self, member):
        """Waits until a member that was killed has ended. A stopped one ends too."""
        until = time.monotonic() + END
        while self.pid(member) and time.monotonic() < until:
            time.sleep(0.02)

    def down(self):
        for member in range(MEMBERS):
            if pid := self.pid(member):
                os.kill(pid, signal.SIGKILL)
        for member in range(MEMBERS):
            self.wait(member)
        shutil.rmtree(self.directory)


def hold():
    etcd = Etcd.create(None)
    # The test may be interrupted together with this script: the end of the input is the sign.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        etcd.up()
        print(f"{etcd.directory}\n{etcd.endpoints()}", flush=True)
        sys.stdin.read()
    finally:
        if etcd.directory.exists():
            etcd.down()


def members(word):
    return range(MEMBERS) if word == "all" else [int(word)]


def main(words):
    match words:
        case ["up", *where] if len(where) < 2:
            etcd = Etcd.create(*(where or [None]))
            etcd.up()
            print(f"{etcd.directory}\n{etcd.endpoints()}")
        case ["down", directory]:
            Etcd(directory).down()
        case ["hold"]:
            hold()
        case ["leader", directory]:
            print(Etcd(directory).leader())
        case ["signal", directory, ("0" | "1" | "2" | "all") as member, ("STOP" | "CONT" | "KILL") as name]:
            Etcd(directory).signal(members(member), name)
        case ["start", directory, ("0" | "1" | "2" | "all") as member]:
            etcd = Etcd(directory)
            for each in members(member):
                etcd.start(each)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
