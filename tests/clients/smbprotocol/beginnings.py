"""The beginning of a connection: SMB 1, and NEGOTIATE with its contexts."""

import os
import struct

import frames as f
from frames import Closed, Session, Wire
from reactions import answers, connected, each, expect, reactions


def downgraded_negotiate(server):
    wire = Wire(server.address)
    message = f.header(f.NEGOTIATE, 0, charge=0) + f.negotiate_body(
        dialects=(0x202, 0x210, 0x300, 0x302), contexts=()
    )
    expect(server, answers(wire, message), "NOT_SUPPORTED", "closed")
    wire.close()
    # Somebody on the way takes the strongest cipher out: the client's keys are not the server's.
    for is_changed, allowed in [(False, ["SUCCESS"]), (True, ["ACCESS_DENIED", "closed"])]:
        wire = Wire(server.address)
        wire.negotiate(contexts=(f.PREAUTH, f.SIGNINGS))
        if is_changed:
            wire.preauth = os.urandom(64)
        session = Session(server, share="", wire=wire)
        found = reactions(session, session.message(f.TREE_CONNECT, f.tree_connect_body("\\\\x\\work")))
        expect(server, found, *allowed)
        wire.close()


def the_first_version_of_the_protocol(server):
    """SMB 1 is known as a way to ask for the current dialect, and for nothing else."""

    def negotiate(*names):
        words = b"".join(b"\2" + name + b"\0" for name in names)
        return (
            b"\xffSMB\x72"
            + bytes(4)
            + b"\x18\x53\xc8"
            + bytes(20)
            + b"\0"
            + struct.pack("<H", len(words))
            + words
        )

    def refuses(answer):
        """The first version's own refusal: no dialect of those, or an error."""
        return answer[:4] == b"\xffSMB" and (answer[33:35] == b"\xff\xff" or answer[5:9] != bytes(4))

    for message in [
        negotiate(b"NT LM 0.12"),
        negotiate(),
        b"\xffSMB",
        b"\xffSMB\x73" + bytes(60),
        negotiate(b"NT LM 0.12")[:37],
        b"\xffSMB\x72" + bytes(27) + b"\0\xff\xff\2",
    ]:
        wire = Wire(server.address)
        try:
            wire.send(message)
            assert refuses(wire.receive())
        except Closed:
            pass
        wire.close()
    wire = Wire(server.address)
    wire.send(negotiate(b"NT LM 0.12", b"SMB 2.002"))
    try:
        answer = wire.receive()
        assert refuses(answer) or f.Reply(answer).code != 0
    except Closed:
        pass
    wire.close()


def upgraded_negotiate(server):
    """The one use of SMB 1, as clients make it that do not know what they talk to."""
    words = b"\2NT LM 0.12\0\2SMB 2.002\0\2SMB 2.???\0"
    wire = Wire(server.address)
    wire.send(
        b"\xffSMB\x72"
        + bytes(4)
        + b"\x18\x53\xc8"
        + bytes(20)
        + b"\0"
        + struct.pack("<H", len(words))
        + words
    )
    reply = f.Reply(wire.receive())
    assert reply.code == 0 and struct.unpack_from("<H", reply.body, 4) == (0x2FF,)
    wire.message_id = 1
    assert struct.unpack_from("<H", wire.negotiate().body, 4) == (0x311,)
    session = Session(server, wire=wire)
    alive = session.alive()
    assert alive == "SUCCESS", alive
    wire.close()


def second_negotiate(server):
    wire = connected(server)
    expect(
        server, answers(wire, f.header(f.NEGOTIATE, wire.take_id(), charge=0) + f.negotiate_body()), "closed"
    )
    wire.close()
    each(server, {"in a session": lambda session: session.message(f.NEGOTIATE, f.negotiate_body())}, "closed")


def signed_negotiate(server):
    """Nobody has keys yet: MS-SMB2 3.3.5.2.4."""
    wire = Wire(server.address)
    message = f.header(f.NEGOTIATE, 0, charge=0) + f.negotiate_body()
    expect(server, answers(wire, f.signed(bytes(16), message)), "INVALID_PARAMETER")
    wire.close()


def nothing_before_negotiate(server):
    for command in range(1, 20):
        wire = Wire(server.address)
        expect(
            server,
            answers(wire, f.header(command, 0) + f.SHORT_BODY),
            "closed",
            "INVALID_PARAMETER",
            "USER_SESSION_DELETED",
            samba=["ACCESS_DENIED"],
        )
        wire.close()


def negotiate_contexts(server):
    """Counts, offsets and lengths that are not true, doubled contexts, and lists without an entry."""
    empty_hashes = f.context(1, struct.pack("<HH", 0, 0))
    bodies = {
        "no contexts": f.negotiate_body(contexts=()),
        "no hash": f.negotiate_body(contexts=(f.CIPHERS,)),
        "two hashes": f.negotiate_body(contexts=(f.PREAUTH, f.PREAUTH)),
        "two lists of ciphers": f.negotiate_body(contexts=(f.PREAUTH, f.CIPHERS, f.CIPHERS)),
        "two lists of signings": f.negotiate_body(contexts=(f.PREAUTH, f.SIGNINGS, f.SIGNINGS)),
        "empty hashes": f.negotiate_body(contexts=(empty_hashes,)),
        "unknown hash": f.negotiate_body(contexts=(f.context(1, struct.pack("<HHH", 1, 0, 9)),)),
        "empty ciphers": f.negotiate_body(contexts=(f.PREAUTH, f.context(2, bytes(2)))),
        "empty signings": f.negotiate_body(contexts=(f.PREAUTH, f.context(8, bytes(2)))),
        "more hashes than there are": f.negotiate_body(
            contexts=(f.context(1, struct.pack("<HHH", 0xFFFF, 0, 1)),)
        ),
        "more salt than there is": f.negotiate_body(
            contexts=(f.context(1, struct.pack("<HHH", 1, 0xFFFF, 1)),)
        ),
        "more ciphers than there are": f.negotiate_body(
            contexts=(f.PREAUTH, f.context(2, struct.pack("<HH", 0xFFFF, 2)))
        ),
        "more contexts than there are": f.negotiate_body(count=0xFFFF),
        "contexts past the end": f.negotiate_body(offset=0xFFFFFFF8),
        "contexts in the header": f.negotiate_body(offset=8),
        "contexts unaligned": f.negotiate_body(offset=105),
        "data past the end": f.negotiate_body(contexts=(f.PREAUTH, struct.pack("<HHI", 2, 0xFFFF, 0))),
        "no dialects": f.negotiate_body(dialects=()),
        "more dialects than there are": f.negotiate_body(dialect_count=0xFFFF),
        "cut short": f.negotiate_body()[:30],
    }
    wrong = []
    for name, body in bodies.items():
        wire = Wire(server.address)
        try:
            # smbd takes the first of two lists of a kind.
            expect(
                server,
                answers(wire, f.header(f.NEGOTIATE, 0, charge=0) + body),
                "INVALID_PARAMETER",
                "NOT_SUPPORTED",
                "closed",
                "SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP",
                samba=["SUCCESS"] if name.startswith("two ") else [],
                what=name,
            )
        except AssertionError as error:
            wrong.append(str(error))
        wire.close()
    assert not wrong, "\n".join(wrong)


def many_contexts(server):
    """Contexts of unknown kinds are passed over, however long. More than 32 contexts are refused; smbd has
    no bound."""
    for count, size, allowed in [
        (29, 8, "SUCCESS"),
        (8, 8000, "SUCCESS"),
        (30, 8, "INVALID_PARAMETER"),
        (1000, 8, "INVALID_PARAMETER"),
    ]:
        wire = Wire(server.address)
        body = f.negotiate_body(
            contexts=(f.PREAUTH, f.CIPHERS, f.SIGNINGS) + (f.context(0x7777, bytes(size)),) * count
        )
        expect(
            server,
            answers(wire, f.header(f.NEGOTIATE, 0, charge=0) + body),
            allowed,
            samba=["SUCCESS"],
        )
        wire.close()


def validate_negotiate_info(server):
    """Dialect 3.1.1 has no use for it; who asks is not who he seems (MS-SMB2 3.3.5.15.12)."""
    data = struct.pack("<I16sHHH", 0x7F, b"hostile-client-x", 1, 1, 0x311)
    each(
        server,
        {"ioctl": lambda session: session.message(f.IOCTL, f.ioctl_body(f.NO_FILE, 0x140204, data))},
        "closed",
        samba=["SUCCESS"],
    )


TESTS = [
    downgraded_negotiate,
    the_first_version_of_the_protocol,
    upgraded_negotiate,
    second_negotiate,
    signed_negotiate,
    nothing_before_negotiate,
    negotiate_contexts,
    many_contexts,
    validate_negotiate_info,
]
