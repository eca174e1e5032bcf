"""Volumes: a bundle in several files (volumes.md)."""
from itertools import accumulate
from types import SimpleNamespace

from blake3 import blake3

from encoding import Cursor, need, sections, unzstd
from sealift import LIMITS, parse_area, parse_preamble, parse_root
from trust import check_signatures, judge

MAGIC, HEADER = b"\x89SLVL\r\n\x1a", 112
LAYOUT = "chunks groups pieces holes landmark? prefixes! repository? recipes!"

def parse_header(data):
    """The fields of a header (volumes 2)."""
    need(MAGIC.startswith(data[:8]), "header", "not a volume")
    need(len(data) >= HEADER, "truncated", "the file ends within its header")
    fields, volume = Cursor(data[8:HEADER], "header"), SimpleNamespace()
    [version] = fields.read("I")
    need(version == 0, "unsupported", f"version {version}")
    need(blake3(data[:HEADER - 32]).digest() == data[HEADER - 32:HEADER], "header", "header_blake3 does not agree")
    kind, reserved, volume.number, volume.count, volume.head_len = fields.read("HHHHI")
    volume.offset, volume.len, volume.file_len, volume.set = fields.read("QQQ32s")
    need(kind == 0, "unsupported", f"kind {kind}")
    need(not reserved, "header", "reserved bytes are not zero")
    need(0 < volume.number <= volume.count, "header", "a number that is not between 1 and count")
    volume.end = volume.offset + volume.len
    need(volume.len and volume.end <= volume.file_len, "header", "a slice that is empty or not in the bundle")
    need((volume.number == volume.count) == (volume.end == volume.file_len), "header", "the last slice alone ends with the bundle")
    return volume

def read_head(volume, data, policy):
    """The bundle's root, and what precedes the index (volumes 3, steps 2 and 3)."""
    front = data[HEADER:]
    def take(start, end):
        need(len(front) >= end and end <= volume.head_len, "truncated" if len(front) < end else "header", "the head's end")
        return front[start:end]
    preamble = take(0, 32)
    need(preamble[:8] == b"\x89SLFT\r\n\x1a", "header", "not the head of a bundle")
    signed = preamble + take(32, 32 + parse_preamble(preamble))
    area_len = int.from_bytes(take(len(signed), len(signed) + 4), "little")
    need(64 <= area_len <= 1 << 20, "header", "area_len is out of its range")
    need(volume.head_len == len(signed) + area_len, "header", "head_len is not that of the head")
    area = take(len(signed), volume.head_len)
    root = parse_root(signed[32:])
    envelopes = parse_area(area, signed)
    for field, limit in LIMITS.items():
        need(vars(root)[field] <= limit, "limit", field)
    volume.front_len = volume.head_len + root.layout_stored
    volume.chunks_at = volume.front_len + root.index_stored
    need(volume.set == blake3(signed).digest(), "header", "set is that of another root")
    need(volume.file_len == volume.chunks_at + root.chunks_stored, "header", "file_len is not that of the root")
    if volume.number == 1:
        need(volume.offset == volume.front_len and volume.end >= volume.chunks_at, "header", "volume 1 without the index")
    keys = check_signatures(signed, envelopes)
    if policy:
        judge(root, signed, keys, policy)
    volume.head = signed + area
    return root

def read_chunks(volume, root, data):
    """Where chunks begin, and their digests (volumes 3, steps 4 and 5)."""
    stored = data[HEADER + volume.head_len:HEADER + volume.front_len]
    need(len(stored) == root.layout_stored, "truncated", "the file ends within the layout")
    need(blake3(stored).digest() == root.layout_blake3, "layout", "the BLAKE3 of the stored layout does not agree")
    layout = unzstd(stored, root.layout_len, root.window_log, "layout")
    with sections(layout, "layout", LAYOUT) as found:
        count = found.chunks.int("I")
        codecs = found.chunks.take(count)
        lens, plain, _ = found.chunks.planes("III", count)
        digests = [found.chunks.take(32) for _ in range(count)]
        for name, payload in vars(found).items():
            if payload and name != "chunks":
                payload.rest = b""  # only their presence is checked
    need(set(codecs) <= {0, 1, 2, 3}, "unsupported", "a chunk of another codec")
    good = all(own and length and (codec or own == length) for codec, own, length in zip(codecs, lens, plain))
    need(good, "layout", "the lengths of a chunk")
    need(count == root.chunks and sum(lens) == root.chunks_stored, "header", "the root says something else of the chunks")
    starts = list(accumulate(lens, initial=volume.chunks_at))
    need(volume.number == 1 or volume.offset in starts, "header", "the slice begins within a chunk")
    need(volume.end in starts, "header", "the slice ends within a chunk")
    return starts, digests

def check_len(volume, data):
    end = HEADER + volume.front_len + volume.len
    need(len(data) >= end, "truncated", "the file ends within its slice")
    need(len(data) == end, "trailing", "bytes after the slice")

def read_alone(data, policy):
    """Check a volume alone; return its content (volumes 3)."""
    volume = parse_header(data)
    root = read_head(volume, data, policy)
    starts, digests = read_chunks(volume, root, data)
    check_len(volume, data)
    at = HEADER + volume.front_len - volume.offset
    if volume.number == 1:
        need(blake3(data[at + volume.front_len:at + volume.chunks_at]).digest() == root.index_blake3, "index", "index_blake3")
    own = [chunk for chunk, start in enumerate(starts[:-1]) if volume.offset <= start < volume.end]
    for chunk in own:
        stored = data[at + starts[chunk]:at + starts[chunk + 1]]
        need(blake3(stored).digest() == digests[chunk], "chunk", "a chunk's digest")
    first = own[0] if own else sum(start < volume.end for start in starts[:-1])
    return {"name": root.name.decode(), "version": root.version, "number": volume.number, "count": volume.count,
            "first_chunk": first, "chunks": len(own)}

def join(files):
    """The bundle that is in a set, given in any order (volumes 4)."""
    volumes = []
    for data in files:
        volume = parse_header(data)
        root = read_head(volume, data, {})
        volumes.append((volume, root, data))
    first, root, data = volumes[0]
    for volume, *_ in volumes:
        need((volume.head, volume.count) == (first.head, first.count), "header", "a volume of another set")
    numbers = sorted(volume.number for volume, *_ in volumes)
    need(len(set(numbers)) == len(numbers), "header", "a number that is there twice")
    need(len(numbers) == first.count, "truncated", "a number that is not there")
    bundle = data[HEADER:HEADER + first.front_len]
    for volume, _, data in sorted(volumes, key=lambda row: row[0].number):
        check_len(volume, data)
        need(volume.offset == len(bundle), "header", "a slice that does not begin where the one before ends")
        bundle += data[HEADER + volume.front_len:]
        read_chunks(volume, root, data)
    return bundle
