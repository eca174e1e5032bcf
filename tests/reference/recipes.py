"""Objects that are made of others (recipes.md): what root and layout say of them, and their bytes."""
import bz2
import lzma
import zlib
from collections import defaultdict, namedtuple
from itertools import islice
from types import SimpleNamespace

import zstandard
from encoding import need

CODED_MAX, DEPTH_MAX = 1 << 27, 4
LIMITS = {"leaves": 1 << 24, "leaf_bytes": 1 << 42, "made_bytes": 1 << 42, "decoded_bytes": 1 << 42, "encoded_bytes": 1 << 42, "memory": 1 << 30}
SUMS = "leaves leaf_bytes made made_bytes decoded_bytes memory"
# What zlib's parameters may be: level, window (beside the bit of raw deflate), memLevel and strategy.
ZLIB = [range(1, 10), range(9, 16), range(1, 10), range(5)]

# The encoders of the registry; this reader has zlib and libbz2, and cannot make what takes another (recipes 5).
ENCODERS = range(1, 8)
# For each level of libzstd, the logarithms of window, chain and hash table (recipes 5.4), those of levels below 1 first.
ZSTD = [tuple(map(int, row.split("/"))) for row in (
    "19/12/13 19/13/14 20/15/16 21/16/17 21/18/18 21/18/19 21/18/19 21/19/20 21/19/20 22/20/21 22/21/22 22/21/22 "
    "22/22/23 22/22/22 22/22/23 22/23/23 22/22/22 23/23/22 23/23/22 23/24/22 25/25/23 26/26/24 27/27/25").split()]
# The memory that decoders take (recipes 5.6); those of xz have a dictionary of at most so many bytes, and 2^17 more.
DICTIONARIES = {3: 1 << 20, 4: 1 << 23, 5: 1 << 26}
CODECS = {1: 1 << 16, 2: 1 << 16, **{codec: size + (1 << 17) for codec, size in DICTIONARIES.items()}, 6: 0, 7: 1 << 18, 8: 1 << 22}

Range = namedtuple("Range", "of start end")
# A part of an object or view: its kind, where it ends there, its length, its ranges, and the coder's row or the codec.
Segment = namedtuple("Segment", "kind end size ranges how")

def parse_sums(table):
    """What the root says (recipes 2)."""
    sums = SimpleNamespace(encoders=[], **dict(zip(SUMS.split(), table.read("6Q"))))
    for _ in range(table.int("H")):
        encoder = table.int("B")
        need(encoder in ENCODERS, "unsupported", f"encoder {encoder}")
        size = table.int("Q")
        need(not sums.encoders or sums.encoders[-1][0] < encoder, "header", "encoders do not ascend")
        sums.encoders.append((encoder, size))
    sums.encoded_bytes = sum(size for _, size in sums.encoders)
    return sums

def check_limits(sums):
    for field, limit in LIMITS.items():
        need(vars(sums)[field] <= limit, "limit", f"{field} of the recipes")

def parse_coder(table):
    """An encoder and its parameters (recipes 3.6 and 5)."""
    encoder, params = table.int("B"), table.string("B")
    need(encoder in ENCODERS, "unsupported", f"encoder {encoder}")
    lens = {1: 4, 2: 10, 3: 7, 4: 3, 5: 3, 6: 1, 7: 3}
    known = len(params) == lens.get(encoder) and {1: is_zlib, 2: is_xz, 3: is_lz4, 4: is_zstd, 5: is_older_zstd, 6: is_bzip2, 7: is_older_zstd}[encoder](params)
    need(known, "unsupported", f"parameters of encoder {encoder} that there are not")
    return encoder, *params

def number(params):
    return int.from_bytes(params, "little")

def is_zlib(params):
    return all(value in of for value, of in zip((params[0], params[1] & 127, *params[2:]), ZLIB))

def is_xz(params):
    lc, lp, pb, branch, check = params[5:]
    return (params[0] & 127 <= 9 and 1 << 12 <= number(params[1:5]) <= 1 << 26 and max(lc, lp, pb) <= 4 and lc + lp <= 4
            and (not branch or 4 <= branch <= 11) and check in (0, 1, 4, 10, 255))

def is_lz4(params):
    call, level, room, padded = params[0], params[1], number(params[2:6]), params[6]
    levels = {0: range(1, 256), 1: range(1, 13), 2: range(1, 2), 3: range(1, 13)}
    return level in levels.get(call, ()) and (1 <= room <= 1 << 20 and padded <= 1 if call > 1 else room == padded == 0)

def is_zstd(params, flags_end=64):
    level, (flags, window) = params[0] - (params[0] & 128) * 2, params[1:]
    return ((-100 <= level <= -1 or 1 <= level <= 22) and flags < flags_end and (not window or 10 <= window <= 27)
            and (flags & 1 or flags == window == 0))

def is_older_zstd(params):
    return is_zstd(params, 32)

def is_bzip2(params):
    return 1 <= params[0] <= 9

def coder_memory(coder, size):
    """The memory that an encoder takes for so many bytes (recipes 5)."""
    encoder, *params = coder
    if encoder == 1:
        return (1 << (params[1] & 127) + 2) + (1 << params[2] + 9)
    if encoder == 2:
        d = number(params[1:5])
        links = 4 if params[0] < 4 else 8
        return d + d // 2 + links * d + 2 * max(1 << 17, min(1 << 25, 1 << (d - 1).bit_length())) + (1 << 21)
    if encoder == 3:
        call, room, padded = params[0], number(params[2:6]), params[6]
        room = size + size // 255 + 16 if call < 2 else room
        return room + ((1 << 18) + (1 << 17) if call & 1 else 1 << 15) + ((1 << 16) + size if padded else 0)
    if encoder == 6:
        return 800_000 * params[0] + (1 << 19)
    level, flags, window = params
    w, c, h = ZSTD[level if level < 128 else 0]
    known = not flags & 1 or flags & 2
    k = 1 << (max(1 << 10, min(1 << 27, size)) - 1).bit_length() if known else 1 << 27
    v = min(k, 1 << (window or (27 if flags & 16 else w)))
    tables = 4 * min(1 << c, 2 * k) + 6 * min(1 << h, 2 * k) + (1 << 22)
    p = max(1 << c + 3, 1 << 21) if flags & 16 else max(4 * v, 1 << 20)
    buffers = v + (5 * p if flags & 8 else 1 << 19) if flags & 1 else size + size // 256 + (1 << 10)
    return tables + buffers + (v // 4 + (1 << 20) if flags & 16 else 0)

def parse_recipes(table, sizes, ids, base_objects):
    """Section 8 of the layout (recipes 3). `base_objects` is none in a full bundle."""
    own = SimpleNamespace(count=table.int("I"), first=len(sizes), base_objects=base_objects or 0)
    [own.sizes], own.ids = table.planes("Q", own.count), [table.take(32) for _ in range(own.count)]
    need(all(own.sizes), "layout", "a leaf of no bytes")
    need(len(set(own.ids) - set(ids)) == own.count, "layout", "a leaf is there twice, or in the index")
    views, count = table.read("II")
    need(views + count, "layout", "neither a recipe nor a view")
    need(not views or base_objects is not None, "layout", "a view without bases")
    [objects], [counts] = table.planes("I", count), table.planes("I", views + count)
    need(all(counts), "layout", "a recipe or view of no segments")
    sizes = [*sizes, *own.sizes]
    need(all(number < len(sizes) for number in objects), "layout", "a recipe of an object that there is not")
    need(len(set(objects)) == len(objects), "layout", "an object has two recipes")
    kinds = table.take(sum(counts))
    need(all(kind < 4 for kind in kinds), "layout", "a segment of another kind")
    columns = parse_columns(table, kinds)
    own.coders = [parse_coder(table) for _ in range(table.int("H"))]
    need(own.coders == sorted(set(own.coders)), "layout", "coders do not ascend")

    own.views, own.made, own.depths, used, kinds = [], {}, {}, set(), iter(kinds)
    before = len(sizes) + own.base_objects
    for number, count in enumerate(counts):
        is_view, depth, segments, end = number < views, 1, [], 0
        for kind in islice(kinds, count):
            need(kind != (2 if is_view else 3), "layout", "a view that encodes, or a recipe that decodes")
            size, how, inputs = next(columns.of[kind])
            ranges = []
            for of, start, length in islice(columns.ranges, inputs):
                need(length, "layout", "a range of no bytes")
                need(of < before + len(own.views) or not is_view, "layout", "a view names a later one")
                need(of < before + views, "layout", "a range of nothing")
                need(not is_view or of >= len(sizes), "layout", "a view names an object that no base has")
                room = sizes[of] if of < len(sizes) else own.views[of - before][-1].end if of >= before else (1 << 64) - 1
                need(start + length <= room, "layout", "a range passes the end of what it is of")
                need(of not in objects or of in own.made, "layout", "a recipe names an object with a later one")
                depth = max(depth, 1 + own.depths.get(of if of < len(sizes) or is_view else None, 0))
                ranges.append(Range(of, start, start + length))
                used.add(of)
            given = sum(part.end - part.start for part in ranges)
            size = given if kind == 0 else size
            need(size, "layout", "a segment of no bytes")
            need(kind < 2 or max(given, size) <= CODED_MAX, "layout", "what is encoded or decoded is too long")
            need(kind != 2 or inputs and how < len(own.coders), "layout", "a segment that encodes nothing, or with no coder")
            end += size
            segments.append(Segment(kind, end, size, ranges, how))
        need(depth <= DEPTH_MAX, "layout", "recipes or views are made of each other too often")
        need(end < 1 << 64, "layout", "a view that is too long")
        if is_view:
            own.depths[before + number] = depth
            own.views.append(segments)
            continue
        object_ = objects[number - views]
        need(end == sizes[object_], "layout", "a recipe of another length than its object")
        own.depths[object_], own.made[object_] = depth, segments
    need(used >= set(range(own.first, len(sizes))), "layout", "a leaf is not used")
    rows = {part.how for segments in own.made.values() for part in segments if part.kind == 2}
    need(len(rows) == len(own.coders), "layout", "a coder is not used")
    own.used = {of - before for of in used if of >= before}
    return own

def parse_columns(table, kinds):
    """By kind, the size of each segment, its coder or codec, and the number of its ranges; and all ranges."""
    [zeros] = table.planes("Q", kinds.count(1))
    encoded = list(zip(*table.planes("HII", kinds.count(2))))
    codecs = table.take(kinds.count(3))
    [lens] = table.planes("I", len(codecs))
    need(all(codec in CODECS for codec in codecs), "unsupported", "another codec of recipes")
    count = kinds.count(0) + sum(inputs for _, _, inputs in encoded) + len(codecs)
    of = (((0, None, 1) for _ in range(kinds.count(0))), ((size, None, 0) for size in zeros),
          ((size, coder, inputs) for coder, size, inputs in encoded), ((size, codec, 1) for codec, size in zip(codecs, lens)))
    return SimpleNamespace(of=list(map(iter, of)), ranges=zip(*table.planes("IQQ", count)))

def sums_of(own, sizes):
    """What the root must say; `sizes` are those of all objects, leaves included."""
    coded = [part for segments in (*own.views, *own.made.values()) for part in segments if part.kind > 1]
    encoders, memory, decoded = defaultdict(int), 0, 0
    for part in coded:
        size = sum(end - start for _, start, end in part.ranges)
        memory = max(memory, size + part.size + (coder_memory(own.coders[part.how], size) if part.kind == 2 else CODECS[part.how]))
        if part.kind == 2:
            encoders[own.coders[part.how][0]] += size
        decoded += part.size if part.kind == 3 else 0
    return SimpleNamespace(leaves=own.count, leaf_bytes=sum(own.sizes), made=len(own.made),
                           made_bytes=sum(sizes[number] for number in own.made), decoded_bytes=decoded, memory=memory,
                           encoders=sorted(encoders.items()), encoded_bytes=sum(encoders.values()))

def encode(coder, data):
    encoder, *params = coder
    if encoder == 6:
        return bz2.compress(data, *params)
    need(encoder == 1, "unsupported", f"this reader has no encoder {encoder}")
    level, bits, memory, strategy = params
    stream = zlib.compressobj(level, zlib.DEFLATED, bits if bits < 128 else -(bits - 128), memory, strategy)
    return stream.compress(data) + stream.flush()

def decode(codec, data, size):
    if codec == 6:
        return decode_lz4(data, size)
    if codec == 7:
        return decode_zstd(data)
    if codec == 8:
        stream = bz2.BZ2Decompressor()
    elif codec in DICTIONARIES:
        # Its own needs come on top of the dictionary, whose next length is half as large again.
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=DICTIONARIES[codec] + (1 << 18))
    else:
        stream = zlib.decompressobj(15 if codec == 1 else -15)
    try:
        plain = stream.decompress(data, size + 1)
    except (zlib.error, lzma.LZMAError, EOFError, OSError):
        plain = b""
    need(stream.eof and not stream.unused_data, "object", "a stream that does not end with its range")
    return plain

def decode_zstd(data):
    """One zstd frame."""
    try:
        # Its frame may state no length: what is decoded is limited by the blocks in it.
        stream = zstandard.ZstdDecompressor().decompressobj()
        need(data[:4] == zstandard.FRAME_HEADER, "object", "not a zstd frame")
        plain = stream.decompress(data)
        need(stream.eof and not stream.unused_data, "object", "a frame that does not end with its range")
        return plain
    except zstandard.ZstdError as error:
        need(False, "object", f"zstd: {error}")

def decode_lz4(data, size):
    """An lz4 block, to its end (the lz4 block format)."""
    plain, rest = bytearray(), memoryview(data)
    def length(start):
        nonlocal rest
        more = 255 if start == 15 else 0
        while more == 255:
            need(rest, "object", "a length that is cut")
            more, rest = rest[0], rest[1:]
            start += more
        return start
    while True:
        need(rest, "object", "an lz4 block that is cut")
        token, rest = rest[0], rest[1:]
        literals = length(token >> 4)
        need(literals <= len(rest), "object", "literals that are cut")
        plain += rest[:literals]
        rest = rest[literals:]
        if not rest:
            return bytes(plain)
        need(len(rest) >= 2, "object", "an offset that is cut")
        offset, rest = int.from_bytes(rest[:2], "little"), rest[2:]
        need(0 < offset <= len(plain), "object", "a match before the first byte")
        match = length(token & 15) + 4
        need(len(plain) + match <= size, "object", "an lz4 block that is too long")
        for _ in range(match):
            plain.append(plain[-offset])

def make(own, segments, start, end, read):
    """The bytes `start` to `end` of what segments make; `read` gives those of a range."""
    plain = bytearray()
    for part in segments:
        first = part.end - part.size
        a, b = max(start, first) - first, min(end, part.end) - first
        if a >= b:
            continue
        if part.kind == 0:
            [(of, offset, _)] = part.ranges
            plain += read(of, offset + a, offset + b)
        elif part.kind == 1:
            plain += bytes(b - a)
        else:
            data = b"".join(read(*own_range) for own_range in part.ranges)
            coded = encode(own.coders[part.how], data) if part.kind == 2 else decode(part.how, data, part.size)
            need(len(coded) == part.size, "object", "an encoder or decoder gives another length than is stated")
            plain += coded[a:b]
    return bytes(plain)

def of_bases(own):
    """The number of each base object that has a range, and the end of that range."""
    first = own.first + own.count
    for part in (part for segments in (*own.views, *own.made.values()) for part in segments):
        yield from ((of - first, end) for of, _, end in part.ranges if first <= of < first + own.base_objects)
