"""Logins that are forged, cut short, or never ended."""

import itertools
import os
import struct

import frames as f
import ntlm
from frames import Closed, Session
from reactions import answers, connected, expect, reactions

# How many logins are begun and left, on how many connections: smbd has a process for each connection.
HALF_OPEN = {"samba": (20, 50)}
CONNECTIONS, LOGINS = 200, 50
SOURCES = itertools.cycle(range(1, 255))


def login(server, user=None, **change):
    """The status with which a login ends that was changed like this."""

    def token(challenge, name, password):
        return ntlm.answer(challenge, name, password, **change)

    return [attempt(server, user or server.victim, token)]


def attempt(server, user, token):
    """The same with a whole token of the caller's. Every attempt is by another address and the account is
    nobody else's, so that a server which slows such logins down does not slow the others."""
    wire = connected(server, source="127.1.0.%d" % next(SOURCES))
    session = Session(server, user=user, share="", wire=wire, token=token)
    session.close()
    return session.reply.status


def the_helper_logs_in(server):
    expect(server, login(server), "SUCCESS")
    expect(server, login(server, mic="absent", announce=False), "SUCCESS")


def all_zero_proof_without_mic(server):
    zero = bytes(16)
    for mic in ["absent", "zero", "right"]:
        for announce in [False, True]:
            expect(
                server,
                login(server, proof=zero, mic=mic, announce=announce),
                "LOGON_FAILURE",
                "INVALID_PARAMETER",
            )
            forged = login(server, proof=zero, session_key=zero, mic=mic, announce=announce)
            expect(server, forged, "LOGON_FAILURE", "INVALID_PARAMETER")


def stripped_mic(server):
    for mic in ["absent", "zero"]:
        expect(
            server,
            login(server, mic=mic, announce=True),
            "LOGON_FAILURE",
            "INVALID_PARAMETER",
            "ACCESS_DENIED",
        )


def user_without_a_hash(server):
    """Nobody can tell which names have an account."""
    zero = bytes(16)
    # Nobody can have a name as long as this: the message is refused before anybody is looked up.
    expect(server, login(server, user="x" * 300), "INVALID_PARAMETER", samba=["LOGON_FAILURE"])
    for user in ["root", "nobody", "no-such-user", "anna\0", "\ud7ff\u0001", "../anna"]:
        expect(server, login(server, user=user), "LOGON_FAILURE")
        expect(
            server,
            login(server, user=user, proof=zero, session_key=zero, mic="absent", announce=False),
            "LOGON_FAILURE",
        )


def anonymous_and_guest(server):
    for change in [{}, {"nt": b""}, {"nt": b"", "lm": b"\0"}, {"nt": b"", "lm": b""}]:
        session = Session(
            server, user="guest", share="", token=lambda c, u, p: ntlm.answer(c, "", "", **change)
        )
        # smbd lets a session without a name begin, and then gives it nothing.
        expect(server, [session.reply.status], "LOGON_FAILURE", "ACCESS_DENIED", samba=["SUCCESS"])
        if session.reply.code == 0:
            found = reactions(session, session.message(f.TREE_CONNECT, f.tree_connect_body("\\\\x\\work")))
            expect(server, found, "ACCESS_DENIED")
        session.close()
    expect(server, login(server, user="guest"), "LOGON_FAILURE")


def older_answers(server):
    """NTLM's first version, LM, and answers too short to be any."""
    for nt in [os.urandom(24), bytes(24), b"\0", os.urandom(16), os.urandom(27)]:
        found = login(server, nt=nt, lm=os.urandom(24), mic="absent", announce=False)
        expect(server, found, "LOGON_FAILURE", "INVALID_PARAMETER", samba=["ACCESS_DENIED"])


def tokens_that_are_none(server):
    """NTLM and SPNEGO cut short, out of order, or with lengths that are not true."""
    good, _ = ntlm.answer(b"NTLMSSP\0\2" + bytes(47), "anna", "x")
    deep = b""
    for _ in range(2000):
        size = len(deep)
        deep = b"\x60" + (bytes([size]) if size < 128 else b"\x82" + struct.pack(">H", size)) + deep
    tokens = [
        b"",
        b"\0",
        b"NTLMSSP\0",
        ntlm.NEGOTIATE[:12],
        b"NTLMSSP\0" + struct.pack("<I", 9),
        good,
        good[:60],
        b"NTLMSSP\0\2" + bytes(60),
        b"\x60\x82\xff\xff\x06",
        b"\x60\x84\xff\xff\xff\xff\x06\x06",
        b"\x60\x80" * 30,
        deep,
        os.urandom(60000),
        b"\xa1\x03\x30\x01\xa0",
        b"\x60\x0b\x06\x06\x2b\x06\x01\x05\x05\x02\xa0\x01\x30",
    ]
    for number, token in enumerate(tokens):
        wire = connected(server)
        found = answers(wire, f.header(f.SESSION_SETUP, wire.take_id()) + f.session_setup_body(token))
        # Little may be the beginning of a login, and nothing of this its end.
        expect(
            server,
            found,
            "closed",
            "INVALID_PARAMETER",
            "LOGON_FAILURE",
            "ACCESS_DENIED",
            "NOT_SUPPORTED",
            "MORE_PROCESSING_REQUIRED",
            samba=["INVALID_BUFFER_SIZE"],
            what="token %d" % number,
        )
        wire.close()
    for field in range(6):
        for value in [0xFFFF, 1]:
            for offset in [0, 0xFFFFFFFF, 60]:

                def token(challenge, user, password):
                    message, key = ntlm.answer(challenge, user, password, mic="absent", announce=False)
                    at = 12 + 8 * field
                    return message[:at] + struct.pack("<HHI", value, value, offset) + message[at + 8 :], key

                # Fields that no answer depends on, such as the machine's name, are free.
                free = ["SUCCESS"] if field in [0, 4, 5] else []
                expect(
                    server,
                    [attempt(server, server.victim, token)],
                    "LOGON_FAILURE",
                    "INVALID_PARAMETER",
                    "ACCESS_DENIED",
                    *free
                )


def places_of_tokens(server):
    """A token that lies outside of its message."""
    for offset, length in [(88, 0xFFFF), (0xFFFF, 10), (0, 40), (60, 40), (88, 41)]:
        wire = connected(server)
        message = f.header(f.SESSION_SETUP, wire.take_id()) + f.session_setup_body(
            ntlm.NEGOTIATE[:40], offset=offset, length=length
        )
        expect(
            server,
            answers(wire, message),
            "INVALID_PARAMETER",
            "LOGON_FAILURE",
            "closed",
            samba=["MORE_PROCESSING_REQUIRED"],
        )
        wire.close()


def sessions_before_their_time(server):
    """Work in a session whose login is not at its end, and in one that nobody began."""
    wire = connected(server)
    begun = wire.setup(ntlm.NEGOTIATE)
    for session_id in [begun.session_id, 0, 1, (1 << 64) - 1]:
        for command, body in [
            (f.TREE_CONNECT, f.tree_connect_body("\\\\x\\work")),
            (f.LOGOFF, f.SHORT_BODY),
            (f.CLOSE, f.close_body(f.NO_FILE)),
        ]:
            found = answers(wire, f.header(command, wire.take_id(), session_id, tree_id=1) + body)
            expect(
                server,
                found,
                "USER_SESSION_DELETED",
                "ACCESS_DENIED",
                "NETWORK_NAME_DELETED",
                "INVALID_PARAMETER",
                samba=["INVALID_HANDLE"],
            )
    wire.close()


def a_login_that_is_held_back(server):
    """The session is not there before the answer is, so a request signed with its keys tells nothing."""
    source = "127.3.0.1"
    for _ in range(4):
        wire = connected(server, source=source)
        session = Session(
            server,
            user=server.victim,
            share="",
            wire=wire,
            token=lambda challenge, user, _: ntlm.answer(challenge, user, "wrong"),
        )
        expect(server, [session.reply.status], "LOGON_FAILURE")
        wire.close()
    wire = connected(server, source=source)
    challenge = wire.setup(ntlm.NEGOTIATE)
    token, key = ntlm.answer(
        wire.token_of(challenge), server.victim, server.passwords[server.victim]
    )
    login = f.header(f.SESSION_SETUP, wire.take_id(), challenge.session_id) + f.session_setup_body(token)
    wire.mix(login)
    signing = f.derive(key, b"SMBSigningKey", wire.preauth)
    body = f.tree_connect_body("\\\\x\\work")
    early = f.header(f.TREE_CONNECT, wire.take_id(), challenge.session_id) + body
    wire.send(login)
    wire.send(f.signed(signing, early))
    replies = {reply.command: reply.status for reply in [f.Reply(wire.receive()) for _ in range(2)]}
    expect(server, [replies[f.SESSION_SETUP]], "SUCCESS")
    expect(server, [replies[f.TREE_CONNECT]], "USER_SESSION_DELETED", samba=["SUCCESS"])
    later = f.header(f.TREE_CONNECT, wire.take_id(), challenge.session_id) + body
    expect(server, answers(wire, f.signed(signing, later)), "SUCCESS")
    wire.close()


def many_logins_held_back(server):
    """A connection has few logins whose answers are held back, and is told so at once."""
    wrong = lambda challenge: ntlm.answer(challenge, server.victim, "wrong")[0]

    def guess(wire):
        challenge = wire.setup(ntlm.NEGOTIATE)
        if challenge.status == "MORE_PROCESSING_REQUIRED":
            token = wrong(wire.token_of(challenge))
            message = f.header(f.SESSION_SETUP, wire.take_id(), challenge.session_id)
            wire.send(message + f.session_setup_body(token))
        return challenge.status

    # So many at once that the next ones are held back for as long as can be.
    before = [connected(server, source="127.6.0.1") for _ in range(10)]
    for wire in before:
        guess(wire)
    wire = connected(server, source="127.6.0.1")
    found = [guess(wire) for _ in range(10)]
    if server.peer == "weir":
        assert found.count("MORE_PROCESSING_REQUIRED") < 10, found
        expect(server, found[-1:], "REQUEST_NOT_ACCEPTED")
    for wire in [wire, *before]:
        wire.close()


def renewals(server):
    """A session is renewed by its own user, and ends with a login that fails."""
    mallory = lambda challenge, user, _: ntlm.answer(challenge, user, "wrong")
    other = lambda challenge, *_: ntlm.answer(challenge, server.other, server.passwords[server.other])
    own = ntlm.answer
    garbage = lambda *_: (b"NTLMSSP\0\3" + bytes(60), None)
    for number, (name, token, status) in enumerate([
        ("wrong", mallory, ["LOGON_FAILURE"]),
        ("other", other, ["ACCESS_DENIED"]),
        ("garbage", garbage, ["INVALID_PARAMETER", "LOGON_FAILURE"]),
        ("own", own, ["SUCCESS"]),
    ]):
        wire = connected(server, source="127.4.0.%d" % (number + 1))
        session = Session(server, user=server.victim, wire=wire)
        file = session.file("renewed%d" % number, disposition=5, access=0x1F01FF, share=0)
        challenge = session.ask(f.SESSION_SETUP, f.session_setup_body(ntlm.NEGOTIATE))
        expect(server, [challenge.status], "MORE_PROCESSING_REQUIRED", what=name)
        message, _ = token(wire.token_of(challenge), server.victim, server.passwords[server.victim])
        reply = session.ask(f.SESSION_SETUP, f.session_setup_body(message))
        lenient = ["SUCCESS"] if name == "other" else []
        expect(server, [reply.status], *status, samba=lenient, what=name)
        assert f.signed(session.signing, reply.data) == reply.data, "the answer (%s) is not signed" % name
        # The open of a session that has ended keeps nobody else out.
        late = Session(server)
        ended = reply.code != 0
        shared = late.create("renewed%d" % number, access=0x120089).status
        expect(server, [shared], "SUCCESS" if ended else "SHARING_VIOLATION", what=name)
        late.close()
        found = reactions(session, session.message(f.READ, f.read_body(file, 1)))
        expect(server, found, "USER_SESSION_DELETED" if ended else "END_OF_FILE", what=name)
        wire.close()


def half_open_logins(server):
    connections, logins = HALF_OPEN.get(server.peer, (CONNECTIONS, LOGINS))
    wires = []
    for _ in range(connections):
        wire = connected(server)
        wires.append(wire)
        try:
            for _ in range(logins):
                expect(
                    server,
                    [wire.setup(ntlm.NEGOTIATE).status],
                    "MORE_PROCESSING_REQUIRED",
                    "INSUFFICIENT_RESOURCES",
                    "REQUEST_NOT_ACCEPTED",
                )
        except Closed:
            pass
    session = Session(server)
    alive = session.alive()
    assert alive == "SUCCESS", alive
    session.close()
    for wire in wires:
        wire.close()


TESTS = [
    the_helper_logs_in,
    all_zero_proof_without_mic,
    stripped_mic,
    user_without_a_hash,
    anonymous_and_guest,
    older_answers,
    tokens_that_are_none,
    places_of_tokens,
    sessions_before_their_time,
    a_login_that_is_held_back,
    many_logins_held_back,
    renewals,
    half_open_logins,
]
