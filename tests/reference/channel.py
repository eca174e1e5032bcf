"""The signed lists of channels (channel.md)."""
import re
from types import SimpleNamespace

from encoding import Cursor, ascends, need
from sealift import parse_area
from trust import check_signatures, judge

NAME = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}")

def parse_list(data, policy):
    """The fields of a list whose signatures are good, and which the policy trusts."""
    need(len(data) >= 32, "truncated", "the list ends in its preamble")
    magic, version, size, reserved = Cursor(data[:32], "header").read("8sII16s")
    need(magic == b"\x89SLCH\r\n\x1a", "header", "not a list")
    need(version == 0, "unsupported", f"version {version}")
    need(1 <= size <= 1 << 24 and not any(reserved), "header", "list_len, or reserved bytes")
    signed, area = data[:32 + size], data[32 + size:]
    need(len(area) >= 4, "truncated", "the list ends before its area")
    area_len = int.from_bytes(area[:4], "little")
    need(64 <= area_len <= 1 << 20, "header", "area_len is out of its range")
    need(len(area) >= area_len, "truncated", "the list ends in its area")
    need(len(area) == area_len, "trailing", "bytes behind the area")
    envelopes = parse_area(area, signed)
    fields, found = Cursor(signed[32:], "header"), SimpleNamespace(tags=[])
    found.version, found.created, found.expires = fields.read("Qqq")
    need(found.created < found.expires, "header", "it does not expire after it was made")
    found.name = name(fields)
    count = fields.int("I")
    need(1 <= count <= 1 << 16, "header", "the number of rows")
    found.files = [row(fields) for _ in range(count)]
    fields.end()
    need(ascends(row["file"] for row in found.files), "header", "files do not ascend")
    keys = check_signatures(signed, [one for one in envelopes if one[0] == 1], "sealift-channel")
    judge(found, signed, keys, policy, "sealift-channel")
    found.unknown = [kind for kind, _ in envelopes if kind != 1]
    return found

def name(fields):
    text = fields.string("B")
    need(NAME.fullmatch(text), "header", "the form of a name")
    return text

def row(fields):
    own = dict(file=name(fields).decode())
    own["version"], own["created"], own["len"] = fields.read("QqQ")
    own["root_digest"], own["index_digest"] = fields.take(32).hex(), fields.take(32).hex()
    count = fields.int("B")
    need(count <= 16, "header", "too many bases")
    own["bases"] = [fields.take(32).hex() for _ in range(count)]
    need(ascends(own["bases"]) and own["index_digest"] not in own["bases"], "header", "bases")
    return own

def of_list(found):
    """The content of a list."""
    return dict(name=found.name.decode(), sequence=found.version, created=found.created, expires=found.expires,
                unknown_envelopes=found.unknown, files=found.files)
