"""Requests: a target's description of what it holds, for a publisher who packs a delta (requests.md)."""
import struct
from types import SimpleNamespace

from blake3 import blake3

from encoding import Cursor, need, sections, unzstd
from index import SECTIONS
from sealift import LIMITS, base

def parse_request(data):
    """The fields, and the decoded outline."""
    head = Cursor(data, "header")
    magic, version = head.read("8sH")
    need(magic == b"\x89SLRQ\r\n\x1a", "header", "not a request")
    need(version == 0, "unsupported", f"version {version}")
    need(len(head.rest) >= 32 and blake3(data[:-32]).digest() == data[-32:], "header", "the request's BLAKE3")
    fields, request = Cursor(head.rest[:-32], "header"), SimpleNamespace()
    request.version, request.name, request.digest, request.index_len = base(fields)
    size, stored = fields.read("QQ")
    need(request.index_len <= LIMITS["index_len"], "limit", "index_len")
    need(size <= request.index_len, "header", "an outline of more bytes than the index")
    stored = fields.take(stored)
    fields.end()
    request.outline = unzstd(stored, size, 27, "header")
    return request

def complete(request, objects):
    """Return the bytes of the target's index, as far as `objects`, pairs of size and id, match it."""
    known = {(size, id_[:8]): id_ for size, id_ in objects}
    with sections(request.outline, "index", SECTIONS) as found:
        for payload in filter(None, vars(found).values()):
            payload.rest = b""  # only their presence is checked
    outline, parts = Cursor(request.outline, "index"), []
    while outline.rest:
        number, flags, size = outline.read("HHQ")
        payload = outline.take(size)
        if number == 9:
            payload = with_ids(payload, known)
        parts.append(struct.pack("<HHQ", number, flags, len(payload)) + payload)
    index = b"".join(parts)
    need(len(index) == request.index_len, "header", "the index has the wrong length")
    return index

def with_ids(payload, known):
    """Build section 9 of the index from that of the outline."""
    table = Cursor(payload, "index")
    count = table.int("Q")
    [sizes], starts = table.planes("Q", count), [table.take(8) for _ in range(count)]
    table.end()
    ids = (known.get(row, row[1] + bytes(24)) for row in zip(sizes, starts))
    return payload[:8 + 8 * count] + b"".join(ids)
