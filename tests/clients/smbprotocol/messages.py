"""Frames, headers, compounds, and the credits that messages cost."""

import contextlib
import os
import socket
import struct

import frames as f
from frames import Closed, Session, Wire
from reactions import answers, connected, each, expect, reactions, received


def frames_that_are_none(server):
    session = Session(server)
    good = session.message(f.ECHO, f.SHORT_BODY)
    session.close()
    payloads = [
        b"",
        b"\0",
        good[:4],
        good[:63],
        good[:64],
        b"\xfeSMC" + good[4:],
        bytes(64),
        b"\xfdSMB",
        b"\xfdSMB" + bytes(48),
        b"\xfcSMB" + bytes(60),
        good[:4] + b"\0\0" + good[6:],
        good[:4] + b"\x41\0" + good[6:],
        os.urandom(5000),
    ]
    for payload in payloads:
        for wire in [Wire(server.address), connected(server)]:
            expect(
                server,
                answers(wire, payload),
                "closed",
                "INVALID_PARAMETER",
                "USER_SESSION_DELETED",
                "ACCESS_DENIED",
            )
            wire.close()


def lengths_of_frames(server):
    """More than a message may have, and less than was said."""
    for claim in [0xFFFFFF, 0xFFFFFFFF, 0x80000010, 0x1000000]:
        for wire in [Wire(server.address), connected(server)]:
            wire.send(bytes(64), claim=claim)
            # The server may have closed the connection on sight of the length.
            with contextlib.suppress(OSError):
                wire.socket.shutdown(socket.SHUT_WR)
            expect(server, received(wire), "closed", "INVALID_PARAMETER")
            wire.close()
    halves = []
    for length in [0, 1, 3, 4, 10, 67]:
        wire = connected(server)
        wire.send_bytes((struct.pack(">I", 100) + b"\xfeSMB" + bytes(96))[:length])
        halves.append(wire)
    session = Session(server)
    alive = session.alive()
    assert alive == "SUCCESS", alive
    session.close()
    for wire in halves:
        wire.close()


def byte_by_byte(server):
    """Slow is not wrong."""
    session = Session(server)
    message = session.message(f.ECHO, f.SHORT_BODY)
    for byte in struct.pack(">I", len(message)) + message:
        session.wire.send_bytes(bytes([byte]))
    assert [reply.status for reply in session.replies()] == ["SUCCESS"]
    session.close()


def next_command(server):
    """Elements that are too short, unaligned, or without an end."""

    def chained(value, count=2):
        def build(session):
            parts = [session.message(f.ECHO, f.SHORT_BODY) + bytes(4) for _ in range(count)]
            parts[0] = session.sign(parts[0][:20] + struct.pack("<I", value) + parts[0][24:])
            return b"".join(parts)

        return build

    each(
        server,
        {
            "%#x" % value: chained(value)
            for value in [1, 8, 63, 71, 73, 0x1000, 0x7FFFFFF8, 0xFFFFFFFF, 0xFFFFFFF8]
        },
        "closed",
        "INVALID_PARAMETER",
        "ACCESS_DENIED",
    )
    each(
        server,
        {"%#x" % value: chained(value, count=1) for value in [64, 72]},
        "closed",
        "INVALID_PARAMETER",
        "ACCESS_DENIED",
        samba=["SUCCESS"],
    )


def endless_compounds(server):
    """As many elements as a frame holds."""
    session = Session(server)
    count = 800
    message = session.compound(*[session.message(f.ECHO, f.SHORT_BODY) for _ in range(count)])
    try:
        session.send(message)
        seen = 0
        while seen < count:
            for reply in session.replies():
                expect(server, [reply.status], "SUCCESS", "INVALID_PARAMETER", "INSUFFICIENT_RESOURCES")
                seen += 1
                if reply.status != "SUCCESS" and not reply.next:
                    seen = count
    except Closed:
        pass
    session.close()


def related_without_a_first(server):
    def build(session):
        return session.message(f.READ, f.read_body(f.NO_FILE, 10), flags=f.RELATED)

    each(server, {"alone": build}, "INVALID_PARAMETER", "FILE_CLOSED", "closed")
    session = Session(server)
    message = session.compound(
        session.message(f.CREATE, f.create_body("absent/name", disposition=1)),
        session.message(f.READ, f.read_body(f.NO_FILE, 10), flags=f.RELATED),
        session.message(f.CLOSE, f.close_body(f.NO_FILE), flags=f.RELATED),
    )
    expect(
        server,
        reactions(session, message, 3),
        "OBJECT_NAME_INVALID",
        "OBJECT_NAME_NOT_FOUND",
        "OBJECT_PATH_NOT_FOUND",
        "INVALID_PARAMETER",
        "FILE_CLOSED",
    )
    session.close()


def bodies_of_a_wrong_size(server):
    """Each command with the right header, and a body that is cut, or says that it has another size."""
    for command in range(1, 19):
        if command == f.CANCEL:
            continue
        messages = {
            "%d, none" % command: lambda session: session.message(command, b""),
            "%d, two bytes" % command: lambda session: session.message(command, b"\x31\0"),
            "%d, zeroes" % command: lambda session: session.message(command, bytes(120)),
            "%d, another size" % command: lambda session: session.message(command, b"\xff\xff" + bytes(200)),
        }
        each(
            server,
            messages,
            "INVALID_PARAMETER",
            "closed",
            "NOT_SUPPORTED",
            "INVALID_DEVICE_REQUEST",
            "INSUFFICIENT_RESOURCES",
            samba=["FILE_CLOSED"],
        )


def unknown_commands(server):
    for command in [19, 20, 0x7F, 0xFFFF]:
        each(
            server,
            {str(command): lambda session: session.message(command, f.SHORT_BODY)},
            "INVALID_PARAMETER",
            "NOT_SUPPORTED",
            "closed",
        )
    each(
        server,
        {"a response": lambda session: session.message(f.ECHO, f.SHORT_BODY, flags=f.RESPONSE)},
        "INVALID_PARAMETER",
        "closed",
        samba=["SUCCESS"],
    )


def cancels_of_nothing(server):
    session = Session(server)
    for flags in [0, f.ASYNC]:
        for number in [0, 1, 999, 1 << 63]:
            session.send(session.sign(f.header(f.CANCEL, number, session.id, flags=flags) + f.SHORT_BODY))
    alive = session.alive()
    assert alive == "SUCCESS", alive
    session.close()


def repeated_message_ids(server):
    each(
        server,
        {
            "the last one": lambda session: session.message(
                f.ECHO, f.SHORT_BODY, message_id=session.wire.message_id - 1
            ),
            "the first one": lambda session: session.message(f.ECHO, f.SHORT_BODY, message_id=0),
        },
        "closed",
    )


def far_message_ids(server):
    for distance in [1 << 16, 1 << 32, (1 << 64) - 1000]:
        each(
            server,
            {
                hex(distance): lambda session: session.message(
                    f.ECHO, f.SHORT_BODY, message_id=session.wire.message_id + distance
                )
            },
            "closed",
        )
    # The id that only the server's own messages have.
    each(
        server,
        {"none": lambda session: session.message(f.ECHO, f.SHORT_BODY, message_id=(1 << 64) - 1)},
        "closed",
    )


def credits_overdrawn(server):
    """A client that never asks for credits uses up those it has. From then on each answer grants one, so
    that it can go on, and a message with the number after that one is overdrawn. smbd grants one from the
    beginning, so that its client keeps what it has."""
    session = Session(server, share="")
    granted = [session.ask(f.ECHO, f.SHORT_BODY, credits=0).credits for _ in range(1000)]
    first = granted.index(1)
    assert (first > 0 or server.peer == "samba") and not any(granted[:first]), granted
    assert set(granted[first:]) == {1}, granted
    overdrawn = session.message(f.ECHO, f.SHORT_BODY, message_id=session.wire.message_id + 1)
    expect(server, reactions(session, overdrawn), "closed", samba=["SUCCESS"])
    session.close()


class Counting(Wire):
    """A connection that counts the credits which it was granted."""

    granted = 1

    def receive(self):
        data = super().receive()
        self.granted += f.Reply(data).credits
        return data


def credits_guessed(server):
    """Credits are granted by answers: the ids of an answer that is not there yet are nobody's."""
    holder = Session(server)
    lock = f.lock_body(holder.file("guessed", disposition=5, access=0x1F01FF), [(0, 9, 2)])
    assert holder.ask(f.LOCK, lock).code == 0
    wire = Counting(server.address)
    wire.negotiate()
    session = Session(server, wire=wire)
    file = session.file("guessed", access=0x1F01FF)
    waits = session.message(f.LOCK, f.lock_body(file, [(0, 9, 2)]), credits=100)
    guess = session.message(f.ECHO, f.SHORT_BODY, message_id=wire.granted)
    session.send(waits)
    # smbd answers that it waits as soon as it does.
    expect(server, reactions(session, guess), "closed", samba=["SUCCESS"])
    session.close()
    holder.close()


def charges_too_small(server):
    session = Session(server)
    file = session.file("charges", disposition=5, access=0x1F01FF)
    directory = session.file("", access=0x81, options=1)
    large = bytes(200000)
    requests = {
        "read": lambda s: s.message(f.READ, f.read_body(file, 200000)),
        "write": lambda s: s.message(f.WRITE, f.write_body(file, large)),
        "directory": lambda s: s.message(
            f.QUERY_DIRECTORY, f.query_directory_body(directory, "*", limit=200000)
        ),
        "info": lambda s: s.message(f.QUERY_INFO, f.query_info_body(file, limit=200000)),
        "ioctl": lambda s: s.message(f.IOCTL, f.ioctl_body(file, 0x940CF, bytes(16), limit=200000)),
    }
    wrong = {}
    for name, build in requests.items():
        for number in [1, 0]:
            message = build(session)
            message = session.sign(message[:6] + struct.pack("<H", number) + message[8:])
            try:
                found = reactions(session, message)
                expect(server, found, "INVALID_PARAMETER", "closed")
            except AssertionError as error:
                wrong[name] = str(error)
            if found == ["closed"]:
                session = Session(server)
                file = session.file("charges", disposition=3, access=0x1F01FF)
                directory = session.file("", access=0x81, options=1)
    assert not wrong, wrong
    # In an element that is not the first.
    for name, build in requests.items():
        for number in [1, 0]:
            first, second = session.message(f.ECHO, f.SHORT_BODY), build(session)
            second = second[:6] + struct.pack("<H", number) + second[8:]
            found = reactions(session, session.compound(first, second), 2)
            what = "%s for %d after another" % (name, number)
            expect(server, found[-1:], "INVALID_PARAMETER", samba=["closed"], what=what)
            assert server.peer == "samba" or found[0] == "SUCCESS", (what, found)
            if found == ["closed"]:
                session = Session(server)
                file = session.file("charges", disposition=3, access=0x1F01FF)
                directory = session.file("", access=0x81, options=1)
    session.close()


def charges_too_large(server):
    each(
        server,
        {
            str(charge): lambda session, charge=charge: session.message(f.ECHO, f.SHORT_BODY, charge=charge)
            for charge in [60000, 0xFFFF]
        },
        "closed",
        "INVALID_PARAMETER",
    )


TESTS = [
    frames_that_are_none,
    lengths_of_frames,
    byte_by_byte,
    next_command,
    endless_compounds,
    related_without_a_first,
    bodies_of_a_wrong_size,
    unknown_commands,
    cancels_of_nothing,
    repeated_message_ids,
    far_message_ids,
    credits_overdrawn,
    credits_guessed,
    charges_too_small,
    charges_too_large,
]
