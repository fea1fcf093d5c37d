"""NTLM's messages of a client (MS-NLMP), without SPNEGO around them, right or wrong on request."""

import hashlib
import hmac
import os
import struct
import time

from spnego._ntlm_raw.md4 import md4

UNICODE, TARGET, SIGN, NTLM, ALWAYS_SIGN, EXTENDED, VERSION, STRONG, KEY_EXCHANGE = (
    1,
    4,
    0x10,
    0x200,
    0x8000,
    0x80000,
    0x2000000,
    0x20000000,
    0x40000000,
)
FLAGS = UNICODE | TARGET | SIGN | NTLM | ALWAYS_SIGN | EXTENDED | VERSION | STRONG | KEY_EXCHANGE
BUILD = bytes.fromhex("0a00 0000 0000 000f")
NEGOTIATE = b"NTLMSSP\0" + struct.pack("<II", 1, FLAGS) + bytes(16) + BUILD


def keyed(key, data):
    return hmac.new(key, data, hashlib.md5).digest()


def rc4(key, data):
    state, j, out = list(range(256)), 0, bytearray()
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    i = j = 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)


def pairs_of(challenge):
    """The target information of a CHALLENGE without its end, and the time in it."""
    length, _, offset = struct.unpack_from("<HHI", challenge, 40)
    rest, out, stamp = challenge[offset : offset + length], b"", None
    while len(rest) >= 4:
        kind, size = struct.unpack_from("<HH", rest)
        if kind == 0:
            break
        if kind == 7:
            stamp = rest[4 : 4 + size]
        out += rest[: 4 + size]
        rest = rest[4 + size :]
    return out, stamp


def answer(
    challenge,
    user,
    password,
    proof=None,
    mic="right",
    announce=True,
    session_key=None,
    nt=None,
    lm=bytes(24),
    domain="",
):
    """An AUTHENTICATE and the key of the session.

    `proof` replaces NTProofStr, and with it goes the key that follows from it; `mic` is right, zero or
    absent, and `announce` says in the signed part that there is one; `nt` replaces the whole answer."""
    pairs, stamp = pairs_of(challenge)
    stamp = stamp or struct.pack("<Q", int((time.time() + 11644473600) * 10**7))
    if announce:
        pairs += struct.pack("<HHI", 6, 4, 2)
    key = keyed(md4(password.encode("utf-16-le")), (user.upper() + domain).encode("utf-16-le"))
    blob = b"\1\1" + bytes(6) + stamp + os.urandom(8) + bytes(4) + pairs + bytes(8)
    right = keyed(key, challenge[24:32] + blob)
    proof = right if proof is None else proof
    base = keyed(key, proof) if session_key is None else session_key
    exported = os.urandom(16)
    fields = [
        lm,
        proof + blob if nt is None else nt,
        domain.encode("utf-16-le"),
        user.encode("utf-16-le"),
        b"",
        rc4(base, exported),
    ]
    place = 64 + len(BUILD) + (0 if mic == "absent" else 16)
    head, payload = b"NTLMSSP\0" + struct.pack("<I", 3), b""
    for field in fields:
        head += struct.pack("<HHI", len(field), len(field), place + len(payload))
        payload += field
    head += struct.pack("<I", FLAGS) + BUILD
    if mic == "absent":
        return head + payload, exported
    mac = bytes(16)
    if mic == "right":
        mac = keyed(exported, NEGOTIATE + challenge + head + bytes(16) + payload)
    return head + mac + payload, exported
