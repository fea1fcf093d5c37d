#!/usr/bin/env python3
"""What an operation costs a client: `weir bench` beside other NFSv3 clients in user space.

One server, one file of 128 MiB in its cache, 32 requests in flight; every client takes its turn in
every round, and every second round goes backwards. Compared is the processor time of the client's
process per operation. Rivals are charged for the measured part alone, `weir bench` and fio for
their whole processes from start to end. Needs gcc, make, cargo, go, and libnfs-dev; builds into
target/client-cost.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILD = ROOT / "target" / "client-cost"
PORT = 24050
EXPORT = "/vol"
FILE = "/weir-bench/file.00000"
FILE_BYTES = 128 << 20
DEPTH = 32
# Name, operation of the rivals, block size, arguments of `weir bench`.
LOADS = [
    ("READ 4 KiB", "read", 4096, ["--rw", "randread", "--bs", "4KiB"]),
    ("WRITE 4 KiB", "write", 4096, ["--rw", "randwrite", "--bs", "4KiB"]),
    ("READ 64 KiB", "read", 65536, ["--rw", "randread", "--bs", "64KiB"]),
    ("WRITE 64 KiB", "write", 65536, ["--rw", "randwrite", "--bs", "64KiB"]),
    ("GETATTR", "getattr", 4096, ["--rw", "getattr"]),
]
LIBNFS = "https://github.com/sahlberg/libnfs.git"
FIO = "https://github.com/axboe/fio.git"
# The least cost that each kind of client must have, as a multiple of the cost of `weir bench` with
# as many connections; None is reported only. With one request on each connection system calls
# dominate the cost of every client, and the bare loop, which makes the same ones, sets the bar.
WANTED = {"one": 1.5, "fio": 3.0, "many": None, "bare": 1 / 1.15}


def reached(ratio, shape):
    return WANTED[shape] is None or ratio >= WANTED[shape]


def text_of(*command, cwd=None):
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout


def run(*command, cwd=None):
    """Runs a step of the build; its output is shown if it fails."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")


def build_system_libnfs():
    run("gcc", "-O2", "-o", BUILD / "libnfs-system", HERE / "client_libnfs.c", "-lnfs")
    version = text_of("pkg-config", "--modversion", "libnfs").strip()
    return [(f"libnfs {version} (C)", "one", [BUILD / "libnfs-system"])]


def build_bare():
    run("gcc", "-O2", "-o", BUILD / "bare", HERE / "client_bare.c", "-lnfs")
    return [("bare loop (C)", "bare", [BUILD / "bare"])]


def fetched(source, name):
    """The directory of a source: itself, or a clone of it."""
    tree = pathlib.Path(source)
    if not tree.is_dir():
        tree = BUILD / f"{name}-source"
        if not tree.exists():
            run("git", "clone", "--quiet", "--depth", "1", source, tree)
    return tree


def build_fio(source):
    tree = fetched(source, "fio")
    if not (tree / "fio").exists():
        run("./configure", "--enable-libnfs", cwd=tree)
        run("make", "-j2", cwd=tree)
    engines = text_of(tree / "fio", "--enghelp")
    if "nfs" not in engines.split():
        raise RuntimeError(f"{tree}/fio has no nfs engine: was libnfs-dev installed when it was built?")
    version = text_of(tree / "fio", "--version").strip().removeprefix("fio-")
    return [(f"fio {version}, engine nfs (C)", "fio", tree / "fio")]


def build_new_libnfs(source):
    tree = fetched(source, "libnfs")
    out = BUILD / "libnfs-build"
    run("cmake", "-S", tree, "-B", out, "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=OFF")
    run("cmake", "--build", out, "-j2", "--target", "nfs")
    include = [f"-I{tree}/include", f"-I{tree}/include/nfsc", f"-I{out}/include"]
    tls = []
    if shutil.which("pkg-config") and subprocess.run(["pkg-config", "--exists", "gnutls"]).returncode == 0:
        tls = ["-lgnutls"]
    run("gcc", "-O2", "-o", BUILD / "libnfs-new", HERE / "client_libnfs.c", *include,
        out / "lib" / "libnfs.a", "-lpthread", *tls)
    version = "from source"
    if (tree / ".git").exists():
        commit = text_of("git", "log", "-1", "--format=%h of %cs", cwd=tree).strip()
        version = f"at {commit}"
    return [(f"libnfs {version} (C)", "one", [BUILD / "libnfs-new"])]


def build_rust():
    run("cargo", "build", "--release", "--locked", "--target-dir", BUILD / "rust", cwd=HERE / "rust")
    program = BUILD / "rust" / "release" / "client-cost"
    packages = json.loads(text_of("cargo", "metadata", "--format-version", "1", "--locked",
                                  cwd=HERE / "rust"))["packages"]
    version = {package["name"]: package["version"] for package in packages}
    return [
        (f"nfs-rs {version['nfs-rs']} (Rust)", "one", [program, "nfs-rs"]),
        (f"nfs3_client {version['nfs3_client']} (Rust)", "many", [program, "nfs3_client"]),
    ]


def build_go():
    run("go", "build", "-o", BUILD / "go", ".", cwd=HERE / "go")
    version = text_of("go", "list", "-m", "github.com/willscott/go-nfs-client", cwd=HERE / "go")
    return [(f"willscott/go-nfs-client {version.split('-')[-2]} (Go)", "one", [BUILD / "go"])]


def build(libnfs, fio):
    """Every rival that can be built, and what is missing for the others."""
    BUILD.mkdir(parents=True, exist_ok=True)
    rivals, missing = [], []
    steps = [
        ("the bare loop (apt-get install gcc libnfs-dev)", build_bare),
        (f"fio with its nfs engine (gcc, make, libnfs-dev, git, {fio}; --fio DIR for a tree of its source)",
         lambda: build_fio(fio)),
        ("libnfs of the distribution (apt-get install gcc pkg-config libnfs-dev)", build_system_libnfs),
        (f"the newest libnfs (git, cmake, {libnfs}; --libnfs DIR for a tree of its source)",
         lambda: build_new_libnfs(libnfs)),
        ("clients from crates.io (cargo)", build_rust),
        ("go-nfs-client (go)", build_go),
    ]
    for what, step in steps:
        try:
            rivals += step()
        except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
            missing.append(what)
            print(f"left out: {what}\n  {error}", file=sys.stderr)
    return rivals, missing


class Server:
    """`weir serve` with one volume whose contract is far above the load."""

    def __init__(self, program):
        self.program = program
        self.directory = tempfile.mkdtemp(prefix="weir-client-cost.", dir=BUILD)
        log = open(pathlib.Path(self.directory) / "log", "w", encoding="utf-8")
        data = f"{self.directory}/data"
        self.process = subprocess.Popen(
            [program, "serve", "--data", data, "--nfs", f"127.0.0.1:{PORT}"], stdout=log, stderr=log)
        create = [
            ["pool", "create", "--data", data, "p", "--level", "extreme", "--size", "1024TiB"],
            ["volume", "create", "--data", data, "vol", "--pool", "p", "--quota", "512TiB"],
        ]
        deadline = time.monotonic() + 20
        for command in create:
            while subprocess.run([program, *command], capture_output=True).returncode != 0:
                if time.monotonic() > deadline:
                    self.stop()
                    raise SystemExit(f"the server did not come up: {self.directory}/log")
                time.sleep(0.2)
        lay_out = weir_command(program, ["--rw", "read", "--bs", "1MiB"], 1, 1)
        lay_out[lay_out.index("--reuse")] = "--layout-block=4KiB"
        run(*lay_out)

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def weir_command(program, load, connections, seconds, warmup=0.5):
    return [
        program, "bench", f"nfs://127.0.0.1:{PORT}{EXPORT}?uid=0&gid=0", *load,
        "--jobs", str(connections), "--depth", str(DEPTH // connections), "--files", "1",
        "--size", f"{FILE_BYTES >> 20}MiB", "--reuse", "--keep", "--time", f"{seconds}s",
        "--warmup", f"{warmup}s", "--quiet",
    ]


def measure_weir(program, load, connections, options):
    result = BUILD / "weir.json"
    command = weir_command(program, load, connections, options.seconds, options.warmup)
    process = subprocess.Popen([*command, "--json", str(result)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"weir bench failed: {' '.join(command)}")
    answer = json.loads(result.read_text(encoding="utf-8"))
    rate = answer["total"]["iops"]
    operations = rate * (options.seconds + options.warmup)
    cpu_s = usage.ru_utime + usage.ru_stime
    return {"client_us": cpu_s / operations * 1e6, "rate": rate, "operations": operations,
            "threads_us": answer["generator"]["cpu_us_per_op"]}


def finished(command, seconds):
    """Runs a command; its process and what it used, or None if it was ended after `seconds`."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process, usage
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return None


def measure_fio(program, operation, block, options, tries=3):
    seconds = options.seconds + options.warmup
    command = [
        program, "--name=load", "--ioengine=nfs", f"--rw=rand{operation}", f"--bs={block}",
        f"--nfs_url=nfs://127.0.0.1{EXPORT}?nfsport={PORT}&mountport={PORT}&uid=0&gid=0",
        f"--filename={FILE}", f"--size={FILE_BYTES}", f"--iodepth={DEPTH}", "--thread",
        "--time_based", f"--runtime={seconds}", "--output-format=json", f"--output={BUILD}/fio.json",
    ]
    process, usage = finished(command, 3 * seconds + 20) or (None, None)
    if process is None:
        # libnfs 4.0 can hang when it unmounts.
        print(f"fio hung and was ended, once more: {' '.join(map(str, command))}", file=sys.stderr)
        return measure_fio(program, operation, block, options, tries - 1) if tries > 1 else None
    text = (BUILD / "fio.json").read_text(encoding="utf-8")
    job = json.loads(text[text.index("{\n"):])["jobs"][0] if "{\n" in text else {"error": 1}
    if process.returncode != 0 or job["error"] != 0 or job[operation]["total_ios"] == 0:
        # Its engine of 3.42 with libnfs 4.0 cannot write 64 KiB.
        print(f"fio failed: {' '.join(map(str, command))}", file=sys.stderr)
        return None
    operations = job[operation]["total_ios"]
    cpu_s = usage.ru_utime + usage.ru_stime
    return {"client_us": cpu_s / operations * 1e6, "rate": job[operation]["iops"],
            "operations": operations}


def measure_rival(command, operation, block, options):
    words = [*map(str, command), operation, str(block), str(PORT), EXPORT, FILE, str(FILE_BYTES),
             str(DEPTH), str(options.warmup), str(options.seconds)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")
    answer = json.loads(done.stdout)
    return {"client_us": answer["cpu_s"] / answer["operations"] * 1e6,
            "rate": answer["operations"] / answer["seconds"], "operations": answer["all"]}


def rounds(server, clients, options):
    """Measures all loads; a list of results for each load and client. A client that failed in a
    round has none for the load: factors compare results of the same round."""
    found, failed = {}, set()
    for name, operation, block, arguments in LOADS:
        for number in range(options.rounds):
            order = clients if number % 2 == 0 else list(reversed(clients))
            for client, shape, command in order:
                if shape == "fio" and operation == "getattr":
                    continue  # Its engine reads and writes only.
                if (name, client) in failed:
                    continue
                before = server.cpu_s()
                if command is None:
                    connections = DEPTH if shape == "many" else 1
                    one = measure_weir(options.weir, arguments, connections, options)
                elif shape == "fio":
                    one = measure_fio(command, operation, block, options)
                    if one is None:
                        failed.add((name, client))
                        continue
                else:
                    one = measure_rival(command, operation, block, options)
                one["server_us"] = (server.cpu_s() - before) / one["operations"] * 1e6
                found.setdefault((name, client), []).append(one)
        print(f"measured {name}", file=sys.stderr)
    for key in failed:
        found.pop(key, None)
    return found


def median(results, key):
    return statistics.median(one[key] for one in results)


def spread(results, key):
    return f"{min(one[key] for one in results):.2f}–{max(one[key] for one in results):.2f}"


def row(name, client, shape, found):
    """A line of the table, and how many times Weir's cost a rival's is, connections being equal."""
    theirs = found[(name, client)]
    cost = median(theirs, "client_us")
    # Of each round by itself: what else the machine did differs more from round to round.
    times = lambda own: statistics.median(
        their["client_us"] / ours["client_us"] for their, ours in zip(theirs, found[(name, own)]))
    one, many = times("weir bench"), times("weir bench, 32 connections")
    rival = not client.startswith("weir bench")
    ratio = one if shape in ("one", "fio") else many
    verdict = ""
    if rival:
        verdict = f"**{ratio:.2f}**" if reached(ratio, shape) else f"{ratio:.2f}, under {WANTED[shape]:.2f}"
    if rival and shape == "many":
        verdict += f"; {one:.2f} of one connection's"
    line = (f"| {name} | {client} | {cost:.2f} | {spread(theirs, 'client_us')} "
            f"| {verdict} | {median(theirs, 'rate'):,.0f} | {median(theirs, 'server_us'):.2f} |")
    return line, (ratio if rival else None)


def machine(busy):
    with open("/proc/cpuinfo", encoding="utf-8") as information:
        models = [line.split(":")[1].strip() for line in information if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    return (f"{os.cpu_count()} processors ({model}), Linux {platform.release()}; client and server on "
            f"loopback, the load average before was {busy:.1f}."
            + (" **The machine was busy: measure again on a quiet one.**" if busy > 1 else ""))


def report(found, clients, missing, busy, options):
    lines = ["| load | client | client µs/op | from–to | times Weir's | op/s | server µs/op |",
             "|---|---|---|---|---|---|---|"]
    least = {}
    for name, *_ in LOADS:
        for client, shape, _ in clients:
            if (name, client) not in found:
                continue
            line, ratio = row(name, client, shape, found)
            lines.append(line)
            if ratio is not None:
                known = least.get((name, shape), (ratio, client))
                least[name, shape] = min(known, (ratio, client))
    verdicts = []
    for (name, shape), (ratio, client) in least.items():
        where = "on one connection" if shape in ("one", "fio") else f"on {DEPTH} connections"
        wanted = "" if reached(ratio, shape) else f", **less than the {WANTED[shape]:.2f} that are wanted**"
        verdicts.append(f"- {name} {where}: {client} takes {ratio:.2f} times as much{wanted}.")
    version = text_of(options.weir, "--version").strip()
    failed = [f"{client} at {name}" for name, operation, *_ in LOADS for client, shape, _ in clients
              if (name, client) not in found and not (shape == "fio" and operation == "getattr")]
    missing = [*missing, *(f"{what}, which failed" for what in failed)]
    left_out = "".join(f"\nLeft out: {what}.\n" for what in missing)
    body = [
        "# What an operation costs a client", "",
        "Written by `make client-cost`. Processor time of the client's process per operation, READ, "
        "WRITE and GETATTR at random places of one file of 128 MiB in the server's cache, "
        f"{DEPTH} requests in flight on one connection; `nfs3_client` waits for each answer, so it has "
        f"{DEPTH} connections and is compared with Weir's generator on as many, and so has the bare loop, "
        "which only waits, receives, checks the status and sends. Rivals are charged for the measured part "
        "alone, `weir bench` and fio for their whole processes from start to end. The second factor of "
        "`nfs3_client` is against one connection of Weir's with as many requests in flight. The rivals' "
        "programs are in `tests/campaigns/client-cost`, libnfs at its raw interface.", "",
        f"{version}. {machine(busy)} Medians of {options.rounds} rounds of {options.seconds} s after "
        f"{options.warmup} s of warm-up, all clients in turns, every second round backwards; factors are "
        "medians of those within each round.", "",
        "The cheapest rival of each kind, load by load:", "", *verdicts, left_out, *lines, "",
        "The cost depends on how many answers meet in one wake-up, so on the server and on what else "
        "runs: compare within one table only.", "",
        f"    tests/campaigns/client-cost/run.py --rounds {options.rounds} --seconds {options.seconds} "
        f"--warmup {options.warmup}", "",
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "client-cost.md").write_text("\n".join(body), encoding="utf-8")
    raw = [{"load": load, "client": client, "rounds": results}
           for (load, client), results in found.items()]
    (options.out / "client-cost.json").write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
    print("\n".join([*verdicts, *lines]))
    return all(reached(ratio, shape) for (_, shape), (ratio, _) in least.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--weir", default=str(ROOT / "target/release/weir"), help="the program to measure")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0, help="measured in each turn")
    parser.add_argument("--warmup", type=float, default=0.5, help="seconds before that")
    parser.add_argument("--libnfs", default=LIBNFS, help="source of the newest libnfs: a directory or a URL")
    parser.add_argument("--fio", default=FIO, help="source of fio: a directory or a URL")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/performance")
    options = parser.parse_args()
    if not os.access(options.weir, os.X_OK):
        raise SystemExit(f"{options.weir} is missing: run `cargo build --release --locked`, or name another by --weir")
    busy = os.getloadavg()[0]
    rivals, missing = build(options.libnfs, options.fio)
    if not rivals:
        raise SystemExit("no other client could be built")
    clients = [("weir bench", "one", None), ("weir bench, 32 connections", "many", None), *rivals]
    server = Server(options.weir)
    try:
        found = rounds(server, clients, options)
    finally:
        server.stop()
    sys.exit(0 if report(found, clients, missing, busy, options) else 1)


if __name__ == "__main__":
    main()
