"""Files, shares and sessions of others, and signatures and seals that are not a session's own."""

import os
import struct
import subprocess

import frames as f
from cryptography.exceptions import InvalidTag
from frames import Closed, Session
from reactions import answers, connected, each, expect, reactions, with_file


def foreign_ids(server):
    """Files, shares and sessions that are another session's."""
    owner, thief = Session(server), Session(server, user=server.other)
    file = owner.file("owned", disposition=5)
    assert owner.ask(f.WRITE, f.write_body(file, b"owned")).status == "SUCCESS"
    for command, body in with_file(file).items():
        expect(server, reactions(thief, thief.message(command, body)), "FILE_CLOSED")
        expect(
            server,
            reactions(thief, thief.message(command, body, tree_id=owner.tree + 1000)),
            "NETWORK_NAME_DELETED",
            samba=["FILE_CLOSED"],
        )
    for session_id in [owner.id, owner.id + 1000, 0]:
        message = thief.message(f.READ, f.read_body(file, 5), session_id=session_id, tree_id=owner.tree)
        expect(server, reactions(thief, message), "USER_SESSION_DELETED", "ACCESS_DENIED", "closed")
        thief.close()
        thief = Session(server, user=server.other)
    assert owner.ask(f.READ, f.read_body(file, 5)).body[16:21] == b"owned"
    thief.close()
    owner.close()


def two_sessions_of_a_connection(server):
    """Each has its own files, though the connection is the same."""
    first = Session(server)
    second = Session(server, user=server.other, wire=first.wire)
    assert first.id != second.id
    file = first.file("first", disposition=5)
    for command, body in with_file(file).items():
        expect(server, reactions(second, second.message(command, body)), "FILE_CLOSED")
    # The one's message, signed by the other.
    message = second.message(f.READ, f.read_body(file, 5), session_id=first.id, tree_id=first.tree)
    expect(server, reactions(first, message), "ACCESS_DENIED", "closed")
    first.close()


def ids_that_have_ended(server):
    session = Session(server)
    file = session.file("ended", disposition=5)
    assert session.ask(f.CLOSE, f.close_body(file)).code == 0
    for command, body in with_file(file).items():
        expect(server, reactions(session, session.message(command, body)), "FILE_CLOSED")
    assert session.ask(f.TREE_DISCONNECT, f.SHORT_BODY).code == 0
    for command, body in with_file(file).items():
        expect(
            server,
            reactions(session, session.message(command, body)),
            "NETWORK_NAME_DELETED",
            samba=["FILE_CLOSED"],
        )
    assert session.ask(f.LOGOFF, f.SHORT_BODY).code == 0
    expect(
        server,
        reactions(session, session.message(f.TREE_CONNECT, f.tree_connect_body("\\\\x\\work"))),
        "USER_SESSION_DELETED",
        "closed",
    )
    session.close()


def unsigned_requests(server):
    session = Session(server)
    file = session.file("unsigned", disposition=5)
    session.close()
    bodies = with_file(file) | {
        f.ECHO: f.SHORT_BODY,
        f.TREE_DISCONNECT: f.SHORT_BODY,
        f.LOGOFF: f.SHORT_BODY,
        f.CREATE: f.create_body("unsigned2"),
    }
    for command, body in bodies.items():
        each(
            server,
            {"unsigned %d" % command: lambda session: session.message(command, body, signed=False)},
            "ACCESS_DENIED",
            "closed",
        )


def wrong_signatures(server):
    def changed(at):
        def build(session):
            message = session.message(f.CREATE, f.create_body("forged"))
            at_end = at % len(message)
            return message[:at_end] + bytes([message[at_end] ^ 1]) + message[at_end + 1 :]

        return build

    def zero(session):
        message = session.message(f.CREATE, f.create_body("forged"))
        return message[:48] + bytes(16) + message[64:]

    each(
        server,
        {"bit at %d" % at: changed(at) for at in [48, 63, 64, 120, -1]} | {"zeroes": zero},
        "ACCESS_DENIED",
        "closed",
    )
    session = Session(server)
    expect(server, [session.create("forged", disposition=1).status], "OBJECT_NAME_NOT_FOUND")
    session.close()


def unsigned_elements(server):
    """A compound whose first element is signed, and whose second is not."""

    def build(session):
        whole = session.compound(
            session.message(f.ECHO, f.SHORT_BODY),
            session.message(f.CREATE, f.create_body("element", disposition=2)),
        )
        (next,) = struct.unpack_from("<I", whole, 20)
        second = whole[next:]
        (flags,) = struct.unpack_from("<I", second, 16)
        return (
            whole[:next]
            + second[:16]
            + struct.pack("<I", flags & ~f.SIGNED)
            + second[20:48]
            + bytes(16)
            + second[64:]
        )

    session = Session(server)
    found = reactions(session, build(session), 2)
    assert found == ["closed"] or found[1] == "ACCESS_DENIED", found
    session.close()
    session = Session(server)
    expect(server, [session.create("element", disposition=1).status], "OBJECT_NAME_NOT_FOUND")
    session.close()


def unsealed_requests(server):
    """A share that is served sealed answers nothing that is not, at whatever place it stands."""
    session = Session(server, share="sealed", sealed=True)
    alive = session.alive()
    assert alive == "SUCCESS", alive
    file = session.file("sealed", disposition=5)
    session.sealed = False
    for command, body in with_file(file).items():
        found = reactions(session, session.message(command, body))
        expect(server, found, "ACCESS_DENIED", samba=["closed"], what="%d alone" % command)
        if found == ["closed"]:
            break
    session.close()
    for command in with_file(f.NO_FILE):
        for name, build in SECOND_PLACES.items():
            session = Session(server, share="sealed", sealed=True)
            file = session.file("sealed", disposition=5)
            session.sealed = False
            first, second = build(session, command, file)
            found = reactions(session, session.compound(first, second), 2)
            what = "%d after %s" % (command, name)
            expect(server, found[-1:], "ACCESS_DENIED", samba=["closed"], what=what)
            assert server.peer == "samba" or found[0] == FIRST_ANSWERS[name], (what, found)
            session.close()


def after_an_echo(session, command, file):
    return session.message(f.ECHO, f.SHORT_BODY), session.message(command, with_file(file)[command])


def after_another_share(session, command, file):
    path = "\\\\x\\work"
    tree = session.ask(f.TREE_CONNECT, f.tree_connect_body(path)).tree_id
    other = session.ask(f.CREATE, f.create_body("open to all", disposition=3), tree_id=tree)
    assert other.code == 0, other.status
    first = session.message(f.QUERY_INFO, f.query_info_body(other.body[64:80]), tree_id=tree)
    return first, session.message(command, with_file(file)[command])


def after_the_same_share(session, command, file):
    first = session.message(f.QUERY_INFO, f.query_info_body(file))
    return first, session.message(command, with_file(f.NO_FILE)[command], flags=f.RELATED)


SECOND_PLACES = {
    "an echo": after_an_echo,
    "another share": after_another_share,
    "the same share": after_the_same_share,
}
FIRST_ANSWERS = {"an echo": "SUCCESS", "another share": "SUCCESS", "the same share": "ACCESS_DENIED"}


def replayed_seals(server):
    session = Session(server, sealed=True)
    frame = session.seal(session.message(f.ECHO, f.SHORT_BODY))
    session.wire.send(frame)
    assert [reply.status for reply in session.replies()] == ["SUCCESS"]
    try:
        session.wire.send(frame)
        expect(server, [reply.status for reply in session.replies()], "closed")
    except Closed:
        pass
    session.close()
    other = Session(server, sealed=True)
    expect(server, answers(other.wire, frame), "closed")
    other.close()


def broken_seals(server):
    """Each part of a sealed frame, changed."""

    def broken(build):
        session = Session(server, sealed=True)
        message = session.message(f.ECHO, f.SHORT_BODY)
        session.wire.send(build(session, message))
        try:
            return [f.Reply(session.open(session.wire.receive())).status]
        except Closed:
            return ["closed"]
        except InvalidTag:
            return ["unreadable"]
        finally:
            session.close()

    def flipped(at):
        def build(session, message):
            frame = session.seal(message)
            return frame[:at] + bytes([frame[at] ^ 1]) + frame[at + 1 :]

        return build

    builds = [flipped(at) for at in [4, 19, 20, 31, 36, 44, 52, 100]]
    builds += [
        lambda session, message, size=size: session.seal(message, size=size)
        for size in [0, 1, 67, 69, 0xFFFFFFFF]
    ]
    builds += [
        lambda session, message, flags=flags: session.seal(message, flags=flags) for flags in [0, 2, 0xFFFF]
    ]
    builds += [
        lambda session, message, id=id: session.seal(message, session_id=id) for id in [0, 1, (1 << 64) - 1]
    ]
    builds += [
        lambda session, message: session.seal(message)[:51],
        lambda session, message: session.seal(b""),
        lambda session, message: session.seal(message[:40]),
        lambda session, message: session.seal(session.seal(message)),
        lambda session, message: session.seal(message) + b"more",
    ]
    for number, build in enumerate(builds):
        try:
            # The flags are covered by the seal like all else; smbd does not look at them.
            expect(server, broken(build), "closed", samba=["SUCCESS"])
        except AssertionError as error:
            raise AssertionError("%d: %s" % (number, error)) from None


def another_session_in_the_seal(server):
    """The seal is one session's, and the message in it another's."""
    first = Session(server, sealed=True)
    second = Session(server, user=server.other, wire=first.wire, sealed=True)
    file = second.file("second", disposition=5)
    inner = second.message(f.WRITE, f.write_body(file, b"forged"))
    try:
        first.wire.send(first.seal(inner))
        expect(
            server,
            [f.Reply(first.open(first.wire.receive())).status],
            "INVALID_PARAMETER",
            "ACCESS_DENIED",
            "USER_SESSION_DELETED",
            "FILE_CLOSED",
        )
        assert second.ask(f.READ, f.read_body(file, 6)).status == "END_OF_FILE"
    except Closed:
        pass
    first.close()


def accounts_that_change(server):
    """Groups that a user gets and loses, and a user who is disabled, while a session is there."""
    if server.peer != "weir":
        return
    weir = lambda *command: subprocess.run([os.environ["WEIR"], *command], check=True, stdout=subprocess.PIPE)
    path = os.path.join(os.environ["SMB_WORK"], "for-the-group")
    with open(path, "wb") as file:
        os.fchown(file.fileno(), 0, 6001)
        os.fchmod(file.fileno(), 0o040)
    weir("group", "create", "readers", "--gid", "6001")
    wire = connected(server, source="127.5.0.1")
    session = Session(server, user=server.victim, wire=wire)
    pipes = session.ask(f.TREE_CONNECT, f.tree_connect_body("\\\\x\\IPC$")).tree_id
    opens = lambda: [session.create("for-the-group", access=1).status]
    expect(server, opens(), "ACCESS_DENIED")
    weir("group", "add", "readers", server.victim)
    expect(server, opens(), "SUCCESS")
    weir("user", "set", server.victim, "--no-groups")
    expect(server, opens(), "ACCESS_DENIED")
    file = session.file("of-the-disabled", disposition=5)
    read = lambda: [session.ask(f.READ, f.read_body(file, 1)).status]
    expect(server, read(), "END_OF_FILE")
    weir("user", "set", server.victim, "--disable")
    try:
        expect(server, read() + opens(), "ACCESS_DENIED")
        pipe = session.ask(f.CREATE, f.create_body("srvsvc", access=3), tree_id=pipes)
        expect(server, [pipe.status], "ACCESS_DENIED")
        for share in ["work", "IPC$"]:
            body = f.tree_connect_body("\\\\x\\" + share)
            expect(server, [session.ask(f.TREE_CONNECT, body).status], "ACCESS_DENIED")
        late = Session(server, user=server.victim, share="", wire=connected(server, source="127.5.0.2"))
        expect(server, [late.reply.status], "LOGON_FAILURE")
        late.wire.close()
    finally:
        weir("user", "set", server.victim, "--enable")
    expect(server, read(), "END_OF_FILE")
    session.close()


TESTS = [
    foreign_ids,
    accounts_that_change,
    two_sessions_of_a_connection,
    ids_that_have_ended,
    unsigned_requests,
    wrong_signatures,
    unsigned_elements,
    unsealed_requests,
    replayed_seals,
    broken_seals,
    another_session_in_the_seal,
]
