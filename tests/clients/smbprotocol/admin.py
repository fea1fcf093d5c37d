#!/usr/bin/env python3
"""The commands `weir smb` (lists of sessions, opens and locks, and closing them) and the contract of a
volume. Only for Weir."""

import json
import os
import subprocess
import sys
import time
import uuid

import frames
import suite
from cases import (
    ALL,
    AT_ONCE,
    CANCELLED,
    EXCLUSIVE,
    FILE,
    LOCK_CONFLICT,
    OPEN,
    OVERWRITE_IF,
    RANGE_NOT_LOCKED,
    READ,
    SHARED,
    UNLOCK,
    USER_SESSION_DELETED,
    Client,
    fails,
    locks,
    same,
    send_compound,
    until_async,
    wait_for_lock,
)
from smbprotocol.connection import Connection, Dialects
from smbprotocol.exceptions import LogonFailure
from smbprotocol.open import Open
from smbprotocol.session import Session

FILE_CLOSED = 0xC0000128
DELETE_ON_CLOSE = 0x1000


def weir(*words):
    """The output of a `weir` command, parsed from JSON."""
    command = [os.environ["WEIR"], "--data", os.environ["WEIR_DATA"], "--output", "json"]
    return json.loads(subprocess.run(command + list(words), stdout=subprocess.PIPE, check=True, text=True).stdout)


def sessions(user):
    return [session for session in weir("smb", "sessions") if session["user"] == user]


def session_of(client):
    found = [one for one in weir("smb", "sessions") if one["id"] == client.session.session_id]
    same(len(found), 1)
    return found[0]


def opens_of(client):
    return [one for one in weir("smb", "opens") if one["session"] == client.session.session_id]


def lists_sessions(server):
    with Client(server) as plain, Client(server, server.other, sealed=True) as sealed:
        file = plain.open("listed-by-session")
        one, other = session_of(plain), session_of(sealed)
        same((one["user"], one["client"], one["dialect"]), (server.user, server.client, "3.1.1"))
        same((one["signing_required"], one["encrypted"], one["opens"]), (True, False, 1))
        same((one["shares"], one["signing"]), (["work"], "AES-GMAC"))
        assert one["idle_seconds"] < 60 and one["cipher"].startswith("AES-"), one
        same((other["user"], other["encrypted"], other["opens"]), (server.other, True, 0))
        assert one["connection"] != other["connection"]
        file.close()
        same(session_of(plain)["opens"], 0)
        plain.session.disconnect()
        same([session["id"] for session in sessions(server.user)], [])


def lists_opens(server):
    with Client(server) as client:
        client.directory("opened").close()
        same(opens_of(client), [])
        top, file = client.directory(""), client.open(r"opened\here", share=1)
        listed = {one["path"]: one for one in opens_of(client)}
        same(sorted(listed), ["", "opened/here"])
        one = listed["opened/here"]
        same((one["volume"], one["user"], one["client"]), ("work", server.user, server.client))
        same((one["access"], one["sharing"], one["delete_pending"]), (["read", "write", "delete"], ["read"], False))
        same(one["access_mask"], ALL)
        client.rename(file, r"opened\there")
        listed = [one["path"] for one in opens_of(client)]
        same(sorted(listed), ["", "opened/there"])
        file.close()
        file = client.open(r"opened\there", options=FILE | DELETE_ON_CLOSE)
        same([one["delete_pending"] for one in opens_of(client) if one["path"]], [True])
        file.close()
        top.close()
        same(opens_of(client), [])


def lists_locks(server):
    with Client(server) as first, Client(server, server.other) as second:
        one, two = first.open("listed-locks"), second.open("listed-locks", access=READ, disposition=OPEN)
        one.lock(locks((5, 10, EXCLUSIVE | AT_ONCE), (2**64 - 1, 1, SHARED | AT_ONCE)))
        wait_for_lock(second, two)
        words = [
            (lock["user"], lock["offset"], lock["length"], lock["mode"], lock["waiting"])
            for lock in weir("smb", "locks")
            if lock["path"] == "listed-locks"
        ]
        same(
            words,
            [
                (server.user, 5, 10, "exclusive", False),
                (server.user, 2**64 - 1, 1, "shared", False),
                (server.other, 0, 10, "exclusive", True),
            ],
        )
        lock = next(lock for lock in weir("smb", "locks") if lock["waiting"])
        same((lock["volume"], lock["protocol"], lock["session"]), ("work", "smb", second.session.session_id))
        same([lock["open"]], [one["id"] for one in opens_of(second)])


def closes_an_open(server):
    """The locks of the closed open are free at once, and its client gets an error at the next request."""
    with Client(server) as first, Client(server) as second:
        one, two = first.open("closed-by-hand"), second.open("closed-by-hand", disposition=OPEN)
        kept = first.open("kept")
        one.lock(locks((0, 10, EXCLUSIVE | AT_ONCE)))
        request = wait_for_lock(second, two)
        number = next(open["id"] for open in opens_of(first) if open["path"] == "closed-by-hand")
        same(weir("smb", "close-open", str(number))["user"], server.user)
        second.connection.receive(request, timeout=30)
        fails(FILE_CLOSED, one.write, b"x", 0)
        fails(FILE_CLOSED, one.read, 0, 1)
        same(kept.write(b"x", 0), 1)
        fails_by_hand("close-open", number)
        temporary = first.open("deleted-by-hand", options=FILE | DELETE_ON_CLOSE)
        number = next(open["id"] for open in opens_of(first) if open["path"] == "deleted-by-hand")
        same(weir("smb", "close-open", str(number))["delete_pending"], True)
        fails(FILE_CLOSED, temporary.write, b"x", 0)
        fails(0xC0000034, first.open, "deleted-by-hand", disposition=OPEN)


def locks_on(path):
    return [lock for lock in weir("smb", "locks") if lock["path"] == path]


def closes_locks(server):
    """A closed lock is free at once for another client, and a request that waits can be cancelled by hand."""
    with Client(server) as first, Client(server) as second:
        one, two = first.open("locked-by-hand"), second.open("locked-by-hand", disposition=OPEN)
        one.lock(locks((0, 10, SHARED | AT_ONCE), (0, 10, SHARED | AT_ONCE), (50, 10, EXCLUSIVE | AT_ONCE)))
        request = wait_for_lock(second, two)
        shared, other, waiting = locks_on("locked-by-hand")
        same((shared["mode"], other["offset"], waiting["waiting"]), ("shared", 50, True))
        same(weir("smb", "close-lock", waiting["id"])["session"], second.session.session_id)
        fails(CANCELLED, second.connection.receive, request, timeout=30)
        fails_by_hand("close-lock", waiting["id"])
        request = wait_for_lock(second, two)
        same(weir("smb", "close-lock", shared["id"])["session"], first.session.session_id)
        second.connection.receive(request, timeout=30)
        fails_by_hand("close-lock", shared["id"])
        held = sorted(locks_on("locked-by-hand"), key=lambda lock: lock["offset"])
        same([lock["session"] for lock in held], [second.session.session_id, first.session.session_id])
        same(held[1], other)
        same(two.write(b"x", 0), 1)
        fails(LOCK_CONFLICT, two.write, b"x", 50)
        fails(RANGE_NOT_LOCKED, one.lock, locks((0, 10, UNLOCK)))
        one.lock(locks((50, 10, UNLOCK)))


def closes_a_session(server):
    """The opens and locks of a closed session end; the other session of the user continues."""
    first = Client(server)
    with Client(server) as second:
        one, two = first.open("ended-by-hand"), second.open("ended-by-hand", disposition=OPEN)
        one.lock(locks((0, 10, EXCLUSIVE | AT_ONCE)))
        number = first.session.session_id
        same(weir("smb", "close-session", str(number))["opens"], 1)
        same([session["id"] for session in sessions(server.user)], [second.session.session_id])
        two.lock(locks((0, 10, EXCLUSIVE | AT_ONCE)))
        # The key that would sign the answer ended with the session.
        first.connection.verify_signature = lambda *_, **__: None
        fails(USER_SESSION_DELETED, one.write, b"x", 0)
        del first.connection.verify_signature
        same(two.write(b"x", 0), 1)
        fails_by_hand("close-session", number)
        # The connection is left, and takes another login.
        again = Session(first.connection, server.user, server.passwords[server.user], auth_protocol="ntlm")
        again.connect()
        same([session["id"] for session in sessions(server.user)], [second.session.session_id, again.session_id])
        first.connection.disconnect(close=False)


def fails_by_hand(command, number):
    words = [os.environ["WEIR"], "--data", os.environ["WEIR_DATA"], "smb", command, str(number)]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True)
    same(done.returncode, 1)
    assert "there is no" in done.stderr, done.stderr


def records():
    """The audit records of the last hour."""
    command = [os.environ["WEIR"], "--data", os.environ["WEIR_DATA"], "--output", "json", "audit", "--since", "1h"]
    lines = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def records_what_was_closed(server):
    """The tests before this one have logged in."""
    closed = [record for record in records() if record.get("route", "").startswith("/v1/smb/")]
    same([record["event"] for record in closed], ["change", "refused", "change", "change", "refused"])
    assert "closed-by-hand" in closed[0]["note"] and server.user in closed[0]["note"], closed[0]
    closed = [record for record in records() if record.get("route", "").startswith("/v1/locks/")]
    same([record["event"] for record in closed], ["change", "refused", "change", "refused"])
    for record, kind in [(closed[0], "exclusive lock that is waited for"), (closed[2], "shared lock")]:
        for word in [kind, "locked-by-hand", "volume work", server.user, "bytes 0 +10"]:
            assert word in record["note"], record


def new_records(before, count):
    """The records after the first `before`, once `count` logins are among them; the server writes them a little later."""
    deadline = time.monotonic() + 30
    while True:
        new = [record for record in records()[before:] if record["event"].startswith("log")]
        if len(new) >= count or time.monotonic() > deadline:
            return new
        time.sleep(0.1)


def fails_to_log_in(server, user, password):
    connection = Connection(uuid.uuid4(), *server.address)
    connection.connect(Dialects.SMB_3_1_1)
    try:
        Session(connection, user, password, require_encryption=False, auth_protocol="ntlm").connect()
    except LogonFailure:
        return
    finally:
        connection.disconnect()
    raise AssertionError("%s logs in" % user)


def records_logins(server):
    before = len(records())
    with Client(server) as client:
        number = client.session.session_id
    fails_to_log_in(server, server.other, "Geheimes Wort")
    fails_to_log_in(server, "nobody-here", "Geheimes Wort")
    new = new_records(before, 4)
    here = server.client
    same(
        [(record["event"], record["who"], record["from"], record.get("code")) for record in new],
        [
            ("login", server.user, here, None),
            ("logoff", server.user, here, None),
            ("login-refused", server.other, here, "wrong_password"),
            ("login-refused", "nobody-here", here, "unknown_user"),
        ],
    )
    same([record["note"] for record in new[:2]], ["SMB session %d" % number] * 2)
    assert "Geheimes" not in json.dumps(new)


def tells_and_cancels_elements_that_wait_for_the_contract(server):
    with Client(server) as client:
        slow = client.open("slow", disposition=OVERWRITE_IF)
        weir("volume", "set", "work", "--max-throughput", "16KiB/s")
        try:
            for cancel in [True, False]:
                # Spends the contract for four seconds, or as many more.
                slow.write(bytes(64 << 10))
                file = Open(client.tree, "compounded-%s" % cancel)
                parts = [
                    file.create(2, ALL, 0, 7, OVERWRITE_IF, FILE, send=False),
                    file.write(b"compound", 0, send=False),
                    file.close(send=False),
                ]
                asked = send_compound(client, *parts)
                until_async(asked[1])
                if cancel:
                    asked[1].cancel()
                create, write, close = [
                    lambda request=request, receive=receive: receive(request)
                    for request, (_, receive) in zip(asked, parts)
                ]
                create()
                if cancel:
                    fails(CANCELLED, write)
                else:
                    same(write(), 8)
                close()
                same([asked[0].async_id, asked[2].async_id], [None, None])
        finally:
            weir("volume", "set", "work", "--max-throughput", "none")


def counts_what_it_does_not_record(server):
    """Malformed tokens, which name no user and are answered at once."""
    before = len(records())
    for _ in range(200):
        wire = frames.Wire(server.address)
        wire.negotiate()
        same(wire.setup(b"no token").status, "INVALID_PARAMETER")
        wire.close()
    deadline, told, counted = time.monotonic() + 100, 0, 0
    while told + counted < 200 and time.monotonic() < deadline:
        new = [record for record in records()[before:] if record["event"] == "login-refused"]
        told = len([record for record in new if "from" in record])
        counted = sum(record.get("suppressed", 0) for record in new)
        time.sleep(0.5)
    same(told + counted, 200)
    assert told <= 60, told


TESTS = [
    lists_sessions,
    lists_opens,
    lists_locks,
    closes_an_open,
    closes_locks,
    closes_a_session,
    records_what_was_closed,
    records_logins,
    tells_and_cancels_elements_that_wait_for_the_contract,
    counts_what_it_does_not_record,
]


if __name__ == "__main__":
    only = sys.argv[1:]
    sys.exit(
        0 if suite.run([test for test in TESTS if not only or test.__name__ in only], suite.Server()) else 1
    )
