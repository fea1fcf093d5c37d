#!/usr/bin/env python3
"""Requests to a server that offers signatures and does not ask for them. smbd is not asked: its sessions
of this kind need another configuration."""

import sys

import frames as f
import suite
from frames import Session
from reactions import expect, reactions


def work_without_signatures(server):
    session = Session(server)
    found = reactions(session, session.message(f.CREATE, f.create_body("unsigned", disposition=5), signed=False))
    expect(server, found, "SUCCESS")
    session.close()


def tree_connects_without_signatures(server):
    """Whoever connects to a share does it signed or sealed: else the connection ends."""
    body = f.tree_connect_body("\\\\x\\work")
    session = Session(server, share="")
    expect(server, reactions(session, session.message(f.TREE_CONNECT, body, signed=False)), "closed")
    session.close()
    # As an element of a compound, which takes the session from the one before it.
    session = Session(server, share="")
    first = session.message(f.ECHO, f.SHORT_BODY, signed=False)
    related = session.message(f.TREE_CONNECT, body, signed=False, flags=f.RELATED, session_id=(1 << 64) - 1)
    expect(server, reactions(session, f.chain([first, related]), 2), "closed")
    session.close()
    # Of a session that is not there, nothing can be signed.
    session = Session(server, share="")
    unknown = session.message(f.TREE_CONNECT, body, signed=False, session_id=session.id + 1000)
    expect(server, reactions(session, unknown), "USER_SESSION_DELETED")
    expect(server, reactions(session, session.message(f.TREE_CONNECT, body)), "SUCCESS")
    session.close()
    session = Session(server, share="", sealed=True)
    expect(server, reactions(session, session.message(f.TREE_CONNECT, body)), "SUCCESS")
    session.close()


def paths_that_are_none(server):
    session = Session(server, share="")
    for path in ["work", "\\work", "\\\\x", "\\\\x\\", "\\\\\\work", "\\\\x\\work\\y", ""]:
        found = reactions(session, session.message(f.TREE_CONNECT, f.tree_connect_body(path)))
        expect(server, found, "INVALID_PARAMETER", what=path)
    found = reactions(session, session.message(f.TREE_CONNECT, f.tree_connect_body("\\\\x\\absent")))
    expect(server, found, "BAD_NETWORK_NAME")
    session.close()


TESTS = [work_without_signatures, tree_connects_without_signatures, paths_that_are_none]


def main():
    only = sys.argv[1:]
    tests = [test for test in TESTS if not only or test.__name__ in only]
    sys.exit(0 if suite.run(tests, suite.Server()) else 1)


main()
