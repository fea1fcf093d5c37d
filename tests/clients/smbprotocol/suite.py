"""What both halves of the suite share: where the server is, and results in the form of the Test
Anything Protocol."""

import os
import re
import socket
import traceback


class Server:
    """The server under test, as the environment tells it, in the words of smb.bash."""

    def __init__(self):
        self.peer = os.environ["SMB_PEER"]
        self.address = (os.environ["SMB_HOST"], int(os.environ["SMB_PORT"]))
        # The address of this client, as the server sees it.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(self.address)
            self.client = probe.getsockname()[0]
        self.user, self.other, self.victim = "anna", "ben", "eve"
        users = [self.user, self.other, self.victim]
        self.passwords = {user: os.environ["SMB_PASSWORD_" + user] for user in users}
        self.known = known_failures(os.environ.get("SMB_KNOWN"))


def known_failures(path):
    """The reasons of the tests that are listed to fail, by name. Tests of smbtorture are in the list too."""
    if not path:
        return {}
    with open(path, encoding="utf-8") as file:
        text = file.read()
    reasons = set(re.findall(r"^# ([a-z-]+): ", text, re.M))
    rows = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    known = {test: reason for test, verdict, reason in rows if not test.startswith("smb2.")}
    for test, verdict, reason in rows:
        assert reason in reasons, "%s: no line explains `%s`" % (test, reason)
        assert test not in known or verdict == "fail", "%s: `%s` is no verdict to list" % (test, verdict)
    return known


def run(tests, server, after=lambda: None):
    """Runs each test, and after each one `after`; returns whether all were good. A test fails by an
    exception, and a run without a test fails too. A test that is known to fail must do so, and shows
    nothing about the server."""
    good = bool(tests)
    if not tests:
        print("not ok - selects-a-test")
    for test in tests:
        name = test.__name__.replace("_", "-")
        reason = server.known.get(name)
        words = ""
        try:
            test(server)
            after()
        except Exception:
            words = traceback.format_exc()
        if words and reason:
            print("ok - %s # SKIP fail: %s" % (name, reason), flush=True)
        elif reason:
            good = False
            print("not ok - %s # it passes, and is known to fail: %s" % (name, reason), flush=True)
        elif words:
            good = False
            print("not ok - " + name)
            print("".join("# %s\n" % line for line in words.splitlines()), end="", flush=True)
        else:
            print("ok - " + name, flush=True)
    return good
