"""What both halves of the suite share: where the server is, and results in the form of the Test
Anything Protocol."""

import os
import traceback


class Server:
    """The server under test, as the environment tells it, in the words of smb.bash."""

    def __init__(self):
        self.peer = os.environ["SMB_PEER"]
        self.address = (os.environ["SMB_HOST"], int(os.environ["SMB_PORT"]))
        self.user, self.other, self.victim = "anna", "ben", "eve"
        users = [self.user, self.other, self.victim]
        self.passwords = {user: os.environ["SMB_PASSWORD_" + user] for user in users}


def run(tests, server, after=lambda: None):
    """Runs each test, and after each one `after`; returns whether all were good. A test fails by an
    exception, and a run without a test fails too."""
    good = bool(tests)
    if not tests:
        print("not ok - selects-a-test")
    for test in tests:
        name = test.__name__.replace("_", "-")
        try:
            test(server)
            after()
            print("ok - " + name, flush=True)
        except Exception:
            good = False
            print("not ok - " + name)
            print(
                "".join("# %s\n" % line for line in traceback.format_exc().splitlines()), end="", flush=True
            )
    return good
