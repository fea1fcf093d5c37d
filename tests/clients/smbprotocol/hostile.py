#!/usr/bin/env python3
"""Messages that no honest client sends. Each gets a status or the end of its connection, and does no
harm: after each, a client that was there before reads and writes as ever, and another one logs in.

What is expected is what MS-SMB2 says a server does. Where smbd does something else, that stands beside
it: with smbd the suite shows that the suite is right."""

import sys

import beginnings
import files
import frames as f
import ids
import logins
import messages
import suite
from frames import Session


class Neighbours:
    """A client with a file open all the while, and one that comes anew after each test."""

    def __init__(self, server):
        self.server = server
        self.session = Session(server, user=server.other)
        self.file = self.session.file("neighbour", disposition=5, access=0x1F01FF)
        self.rounds = 0

    def unharmed(self):
        self.rounds += 1
        text = b"round %d " % self.rounds * 1000
        assert self.session.ask(f.WRITE, f.write_body(self.file, text)).code == 0
        assert self.session.ask(f.READ, f.read_body(self.file, len(text))).body[16:] == text
        fresh = Session(self.server)
        assert fresh.alive() == "SUCCESS"
        fresh.close()


def main():
    server = suite.Server()
    only = sys.argv[1:]
    tests = [test for part in [logins, beginnings, messages, ids, files] for test in part.TESTS]
    neighbours = Neighbours(server)
    tests = [test for test in tests if not only or test.__name__ in only]
    sys.exit(0 if suite.run(tests, server, neighbours.unharmed) else 1)


main()
