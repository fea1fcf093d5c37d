#!/usr/bin/env python3
"""Runs smbtorture's SMB 3.1.1 tests one by one and judges them by two tables.

    smbtorture.py [--peer NAME] [--known-here FILE] [--slow FACTOR] [--out FILE] [--only PATTERN]
                  CONFIGURATION HOST:PORT USER PASSWORD SHARE...

Every test is a process of its own with a time limit, so that one which hangs costs only itself. One
test at a time runs in each SHARE. Verdicts are pass, fail, skip and timeout.

smbtorture-samba.tsv has the verdicts of Samba itself. smbtorture-known.tsv has the tests that do not
pass on Weir, the verdict they have instead, and why. A test that is not listed must pass, and a listed
one must have its verdict: one that passes is an error too. A reason that begins with `samba` holds
only for tests that Samba does not pass either. --known-here names a list of the tests that have another
verdict where this server's files lie; there `omit` stands for a test that is not run. With --peer samba
its own table is the expectation. Time limits are FACTOR times as long.

Results in the form of the Test Anything Protocol: a test that keeps to a listed verdict is `ok` and
marked SKIP, because it shows nothing about Weir. --out writes the verdicts in the form of Samba's table."""

import argparse
import collections
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
SUITES = """connect read rw create dir getinfo setinfo lock sharemode deny delete-on-close-perms rename ioctl
mkdir tcon timestamps compound compound_find maxfid credits session""".split()
# Seconds for one test, beside a busy machine, and for those that take long with a good server.
LIMIT = 120
LONGER = {"smb2.maxfid": 300, "smb2.compound_find.compound_find_close": 300}
# Less of what only takes time: open files at once, and the seconds of a benchmark among the tests.
OPTIONS = ["torture:maxopenfiles=5000", "torture:timelimit=2", "torture:progress=no"]

Result = collections.namedtuple("Result", "verdict seconds words")


def tests_of(suites):
    """The names of the tests, which the listing gives with their last part twice."""
    listing = subprocess.run(["smbtorture", "--list"], capture_output=True, text=True, check=True).stdout
    names = []
    for line in listing.splitlines():
        parts = re.fullmatch(r"(smb2\.(.+))\.\2|(smb2\..+)\.(.+)\.\4", line)
        if parts:
            names.append(parts[1] or parts[3] + "." + parts[4])
    return [name for name in names if name.split(".")[1] in suites]


def verdict_of(code, text):
    """smbtorture ends with 0 unless a test failed, and says of each test how it went."""
    marks = set(re.findall(r"^(success|failure|error|skip): ", text, re.M))
    if code != 0 or marks & {"failure", "error"} or not marks:
        return "fail"
    return "pass" if "success" in marks else "skip"


def words_of(text):
    """What smbtorture says of a failure, on one line and without the paths of its sources."""
    reason = re.search(r"^(?:failure|error|skip): [^\[]*\[\n?(.*?)\n?\]$", text, re.M | re.S)
    words = reason[1] if reason else text.strip()[-300:]
    return re.sub(r"\S*/(\w+\.c:\d+)", r"\1", re.sub(r"\s+", " ", words)).strip()[:300]


def run(name, share, arguments):
    host, port = arguments.server.rsplit(":", 1)
    command = [
        "smbtorture",
        "-s",
        arguments.configuration,
        "-p",
        port,
        "-U",
        arguments.user + "%" + arguments.password,
    ]
    command += ["--option=" + option for option in OPTIONS] + ["//%s/%s" % (host, share), name]
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="smbtorture.") as folder:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        late = False
        try:
            output, _ = process.communicate(timeout=LONGER.get(name, LIMIT) * arguments.slow)
        except subprocess.TimeoutExpired:
            late = True
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
    text = output.decode("utf-8", "replace")
    verdict = "timeout" if late else verdict_of(process.returncode, text)
    return Result(verdict, time.monotonic() - begun, "" if verdict == "pass" else words_of(text))


def samba_table():
    lines = (HERE / "smbtorture-samba.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return {test: (verdict, float(seconds)) for test, verdict, seconds in rows}


def rows_of(path, errors):
    """Test, verdict and reason of each row. Reasons are explained in lines of `# ID: words`."""
    text = path.read_text()
    reasons = set(re.findall(r"^# ([a-z-]+): ", text, re.M))
    rows = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    for test, _, reason in rows:
        if reason not in reasons:
            errors.append("%s: no line explains `%s`" % (test, reason))
    for test, count in collections.Counter(test for test, _, _ in rows).items():
        if count > 1:
            errors.append(test + " is listed twice")
    return rows


def known_table(samba):
    """Verdict and reason of each listed test, and what is wrong with the list."""
    known, errors = {}, []
    for test, verdict, reason in rows_of(HERE / "smbtorture-known.tsv", errors):
        if verdict not in ["fail", "skip", "timeout"]:
            errors.append("%s: `%s` is no verdict to list" % (test, verdict))
        if test not in samba:
            errors.append(test + " is listed and not a test of Samba's table")
        elif reason.startswith("samba") and samba[test][0] == "pass":
            errors.append("%s passes on Samba, so `%s` is no reason" % (test, reason))
        known[test] = (verdict, reason)
    return known, errors


def add_known_here(known, path, samba, errors):
    """Puts the verdicts of another list, of the place where the files lie, before those of `known`."""
    for test, verdict, reason in rows_of(path, errors):
        if not test.startswith("smb2."):
            continue
        if test not in samba:
            errors.append(test + " is listed and not a test of Samba's table")
        if verdict == known.get(test, ("pass", ""))[0]:
            errors.append("%s: `%s` is its verdict without this list" % (test, verdict))
        known[test] = (verdict, reason)


def judge(name, result, expected, reason):
    """The line for one test, and whether it is as expected."""
    if result.verdict != expected:
        words = "%s instead of %s" % (result.verdict, expected)
        return "not ok - %s # %s%s" % (name, words, ": " + result.words if result.words else ""), False
    if expected == "pass":
        return "ok - " + name, True
    return "ok - %s # SKIP %s: %s" % (name, expected, reason), True


def parts_of(names, samba, count):
    """The tests in `count` lists that take about as long with Samba. A suite stays together and in
    order, because some of its tests begin with what others leave; the same lists are made every time."""
    suites = collections.defaultdict(list)
    for name in names:
        suites[name.split(".")[1]].append(name)
    seconds = {suite: sum(samba.get(name, ("", 0))[1] for name in tests) for suite, tests in suites.items()}
    parts = [[0, []] for _ in range(count)]
    for suite in sorted(suites, key=lambda suite: (-seconds[suite], suite)):
        part = min(parts, key=lambda part: part[0])
        part[0] += seconds[suite]
        part[1] += suites[suite]
    return [tests for _, tests in parts]


def run_all(names, samba, arguments, report):
    """Runs the tests of each share one after the other, and the shares side by side."""
    results, lock = {}, threading.Lock()

    def work(share, part):
        for name in part:
            result = run(name, share, arguments)
            with lock:
                results[name] = result
                report(name, result)

    parts = parts_of(names, samba, len(arguments.share))
    threads = [threading.Thread(target=work, args=pair) for pair in zip(arguments.share, parts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", default="weir")
    parser.add_argument("--known-here", default="")
    parser.add_argument("--slow", type=int, default=1)
    parser.add_argument("--out")
    parser.add_argument("--only", default="")
    for name in ["configuration", "server", "user", "password"]:
        parser.add_argument(name)
    parser.add_argument("share", nargs="+")
    arguments = parser.parse_args()

    samba = samba_table()
    if arguments.peer == "samba":
        known, errors = {test: (verdict, "as in the table") for test, (verdict, _) in samba.items()}, []
    else:
        known, errors = known_table(samba)
        if arguments.known_here:
            add_known_here(known, pathlib.Path(arguments.known_here), samba, errors)
    names = tests_of(SUITES)
    errors += ["smbtorture does not have %s any more" % test for test in sorted(samba.keys() - set(names))]
    names = [name for name in names if re.search(arguments.only, name)]
    omitted = [name for name in names if known.get(name, ("", ""))[0] == "omit"]
    for name in omitted:
        print("ok - %s # SKIP omit: %s" % (name, known[name][1]))
    names = [name for name in names if name not in omitted]
    failed = len(errors)
    for error in errors:
        print("not ok - tables # " + error)

    def report(name, result):
        nonlocal failed
        line, good = judge(name, result, *known.get(name, ("pass", "")))
        failed += not good
        print(line, flush=True)

    begun = time.monotonic()
    results = run_all(names, samba, arguments, report)
    passes = {name for name, result in results.items() if result.verdict == "pass"}
    of_samba = {name for name in results if samba.get(name, ("", 0))[0] == "pass"}
    count = collections.Counter(result.verdict for result in results.values())
    print(
        "# %s in %.0f s"
        % (
            ", ".join("%d %s" % (count[verdict], verdict) for verdict in sorted(count)),
            time.monotonic() - begun,
        )
    )
    print("# of %d that pass on Samba %d pass" % (len(of_samba), len(of_samba & passes)))
    if arguments.out:
        rows = ["%s\t%s\t%.1f\n" % (name, results[name].verdict, results[name].seconds) for name in names]
        pathlib.Path(arguments.out).write_text("".join(rows))
    sys.exit(1 if failed or not results else 0)


main()
