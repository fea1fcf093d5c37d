"""Sends bytes to a server and compares what it does with what it may do."""

import struct

import frames as f
from frames import Closed, Session, Wire


def reactions(session, message, count=1):
    """The statuses that come back for these bytes, or that the connection was closed."""
    try:
        return [reply.status for reply in session.ask_raw(message, count)]
    except Closed:
        return ["closed"]


def answers(wire, payload, **options):
    """The same before a login."""
    try:
        wire.send(payload, **options)
    except Closed:
        return ["closed"]
    return received(wire)


def received(wire):
    """The status of the next message before a login, or that the connection was closed."""
    try:
        return [f.Reply(wire.receive()).status]
    except Closed:
        return ["closed"]


def expect(server, found, *allowed, samba=(), what=""):
    """`samba` is what smbd may say besides, and `what` the name of a case."""
    allowed = allowed + (tuple(samba) if server.peer == "samba" else ())
    wrong = [reaction for reaction in found if reaction not in allowed]
    assert found and not wrong, "%s: %s instead of %s" % (
        what,
        ", ".join(found) or "nothing",
        " or ".join(allowed),
    )


def each(server, messages, *allowed, samba=(), **options):
    """Every one of these messages, by name, in a session of its own."""
    wrong = []
    for name, build in messages.items():
        session = Session(server, **options)
        try:
            expect(server, reactions(session, build(session)), *allowed, samba=samba, what=name)
        except AssertionError as error:
            wrong.append(str(error))
        finally:
            session.close()
    assert not wrong, "\n".join(wrong)


def connected(server, source=None):
    wire = Wire(server.address, source=source)
    wire.negotiate()
    return wire


def with_file(file):
    """A request of each kind that names a file."""
    return {
        f.CLOSE: f.close_body(file),
        f.FLUSH: struct.pack("<HHI", 24, 0, 0) + file,
        f.READ: f.read_body(file, 5),
        f.WRITE: f.write_body(file, b"stolen"),
        f.LOCK: f.lock_body(file, [(0, 5, 2)]),
        f.IOCTL: f.ioctl_body(file, 0x140078),
        f.QUERY_DIRECTORY: f.query_directory_body(file, "*"),
        f.QUERY_INFO: f.query_info_body(file),
        f.SET_INFO: f.set_info_body(file, 13, b"\1"),
    }
