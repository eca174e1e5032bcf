"""Recovery files: what makes lost bytes of a bundle again (recovery.md)."""
from functools import reduce
from operator import xor
from types import SimpleNamespace
from zlib import crc32

from blake3 import blake3

from encoding import Cursor, ascends, need
from volume import HEADER, MAGIC, parse_header, read_head

POLYNOMIAL = 1 << 16 | 1 << 5 | 1 << 3 | 1 << 2 | 1
BASIS = [int(word, 16) for word in """0001 acca 3c0e 163e c582 ed2e 914c 4012 6c98 10d8 6a72 b900 fdb8 fb34 ff38 991e""".split()]

def times(a, b):
    """The product of two elements (recovery 4)."""
    product = 0
    while b:
        if b & 1:
            product ^= a
        a, b = a << 1, b >> 1
        if a >> 16:
            a ^= POLYNOMIAL
    return product

def inverse(a):
    power, product = a, 1
    for _ in range(15):
        power = times(power, power)
        product = times(product, power)
    return product

def element(number):
    return reduce(xor, (base for bit, base in enumerate(BASIS) if number >> bit & 1), 0)

def number_of():
    """The numbers of the powers of x, by elimination; a number is linear in its element."""
    rows = [(base, 1 << bit) for bit, base in enumerate(BASIS)]
    for bit in range(16):
        at = next(at for at in range(bit, 16) if rows[at][0] >> bit & 1)
        rows[bit], rows[at] = rows[at], rows[bit]
        pivot = rows[bit]
        rows = [(row[0] ^ pivot[0], row[1] ^ pivot[1]) if at != bit and row[0] >> bit & 1 else row for at, row in enumerate(rows)]
    return [number for _, number in rows]

NUMBERS = number_of()

def number(value):
    return reduce(xor, (NUMBERS[bit] for bit in range(16) if value >> bit & 1), 0)

def weights(data, parity):
    """What each data symbol weighs in each recovery symbol: the polynomials of recovery 4, in Lagrange's form."""
    m = 1 << (parity - 1).bit_length()
    table = []
    for r in range(parity):
        row = []
        for point in range(m, m + data):
            others = [other for other in range(point - point % m, point - point % m + m) if other != point]
            above = reduce(times, (element(r) ^ element(other) for other in others), 1)
            below = reduce(times, (element(point) ^ element(other) for other in others), 1)
            row.append(times(above, inverse(below)))
        table.append(row)
    return table

def symbols(shard):
    """The elements of a shard."""
    return [element(shard[block + at] | shard[block + at + 32] << 8) for block in range(0, len(shard), 64) for at in range(32)]

def shard_of(values):
    numbers, out = list(map(number, values)), bytearray()
    for block in range(0, len(numbers), 32):
        part = numbers[block:block + 32]
        out += bytes(value & 255 for value in part) + bytes(value >> 8 for value in part)
    return bytes(out)

def solve(rows, sides):
    """Solve a system of linear equations, whose sides are lists of elements."""
    rows, sides = [list(row) for row in rows], [list(side) for side in sides]
    for at in range(len(rows)):
        pivot = next(row for row in range(at, len(rows)) if rows[row][at])
        rows[at], rows[pivot], sides[at], sides[pivot] = rows[pivot], rows[at], sides[pivot], sides[at]
        factor = inverse(rows[at][at])
        rows[at], sides[at] = [times(value, factor) for value in rows[at]], [times(value, factor) for value in sides[at]]
        for other in range(len(rows)):
            if other != at and rows[other][at]:
                factor = rows[other][at]
                rows[other] = [a ^ times(b, factor) for a, b in zip(rows[other], rows[at])]
                sides[other] = [a ^ times(b, factor) for a, b in zip(sides[other], sides[at])]
    return sides

def parse(data):
    """Header and geometry (recovery 7, steps 1 to 3)."""
    need(MAGIC.startswith(data[:8]), "header", "not a recovery file")
    need(len(data) >= HEADER, "truncated", "the file ends within its header")
    fields, file = Cursor(data[8:HEADER], "header"), SimpleNamespace()
    [version] = fields.read("I")
    need(version == 0, "unsupported", f"version {version}")
    need(blake3(data[:HEADER - 32]).digest() == data[HEADER - 32:HEADER], "header", "header_blake3 does not agree")
    kind, reserved, file.number, file.count, file.head_len = fields.read("HHHHI")
    file.offset, file.len, file.file_len, file.set = fields.read("QQQ32s")
    need(kind == 1, "unsupported", f"kind {kind}")
    need(not reserved, "header", "reserved bytes are not zero")
    need(0 < file.number <= file.count, "header", "a number that is not between 1 and count")
    need(file.head_len < file.offset < file.file_len, "header", "a body that is not behind the head")
    end = HEADER + file.offset + file.len
    need(end < 1 << 64, "header", "a length that no file has")
    need(len(data) >= end, "truncated", "the file ends within its records")
    need(len(data) == end, "trailing", "bytes after the records")
    fields = Cursor(data[HEADER + file.offset:], "header")
    file.shard_len, file.run, file.parity, file.pad, file.columns = fields.read("IIIII")
    file.starts = list(fields.read(f"{file.columns}Q")) if file.columns <= len(data) else fields.take(len(data))
    at = HEADER + file.offset + 20 + 8 * file.columns
    digest = blake3(data[:HEADER] + data[HEADER + file.offset:at]).digest()
    need(fields.take(32) == digest, "header", "geometry_blake3 does not agree")
    need(64 <= file.shard_len <= 65536 and file.shard_len % 64 == 0, "header", "shard_len")
    need(file.run and file.parity >= file.count, "header", "run or parity")
    need(file.pad < file.shard_len, "header", "pad")
    need(file.starts[:1] == [file.offset] and ascends([*file.starts, file.file_len]), "header", "where columns begin")
    m = 1 << (file.parity - 1).bit_length()
    need(file.columns * file.run + m <= 65536, "header", "more points than the code has")
    file.lens = [end - start for start, end in zip(file.starts, [*file.starts[1:], file.file_len])]
    file.codewords = -(-max(-(-(length + file.pad) // file.shard_len) for length in file.lens) // file.run)
    file.own = [v for v in range(file.columns) if file.number - 1 in (v % file.count, (v + 1) % file.count)]
    file.shards = range(file.number - 1, file.parity, file.count)
    file.sums = 4 * (len(file.shards) + file.run * len(file.own) + 1)
    file.record_len = len(file.shards) * file.shard_len + file.sums + -file.sums % file.shard_len
    start = at + 32 + -(at + 32) % file.shard_len
    need(start + file.record_len * file.codewords == end, "header", "len is not that of the geometry")
    need(not any(data[at + 32:start]), "header", "bytes before the records that are not zero")
    file.records = [data[start + file.record_len * c:start + file.record_len * (c + 1)] for c in range(file.codewords)]
    return file

def read_file(data, policy):
    """A recovery file whose records are not checked, and the root (recovery 7, steps 1 to 6)."""
    file = parse(data)
    root = read_head(SimpleNamespace(**{**vars(file), "number": 0}), data, policy)
    front = data[HEADER:HEADER + file.offset]
    need(file.offset == file.head_len + root.layout_stored, "header", "offset is not that of the head")
    need(blake3(front[file.head_len:]).digest() == root.layout_blake3, "layout", "the BLAKE3 of the stored layout does not agree")
    file.front = front
    return file, root

def parse_record(file, record):
    """The sound recovery shards of a codeword by their numbers, and the checksums of data shards by column; or none."""
    at = len(file.shards) * file.shard_len
    sums = [int.from_bytes(record[at + 4 * i:at + 4 * i + 4], "little") for i in range(file.sums // 4)]
    if crc32(record[at:at + file.sums - 4]) != sums[-1]:
        return {}, {}
    shards = {r: record[i * file.shard_len:(i + 1) * file.shard_len] for i, r in enumerate(file.shards)}
    sound = {r: shard for (r, shard), crc in zip(shards.items(), sums) if crc32(shard) == crc}
    first = len(file.shards)
    return sound, {v: sums[first + i * file.run:first + (i + 1) * file.run] for i, v in enumerate(file.own)}

def read_alone(data, policy):
    """Check a recovery file alone; return its content (recovery 7)."""
    file, root = read_file(data, policy)
    for record in file.records:
        need(len(parse_record(file, record)[0]) == len(file.shards), "chunk", "a record does not match its checksums")
        need(not any(record[len(file.shards) * file.shard_len + file.sums:]), "chunk", "the fill of a record")
    return {"name": root.name.decode(), "version": root.version, "number": file.number, "count": file.count,
            "columns": file.columns, "run": file.run, "parity": file.parity, "codewords": file.codewords}

def repair(data, others):
    """The bundle of which these recovery files and volumes are left (recovery 6 and 8)."""
    first, _ = read_file(data, {})
    files, slices = [first], {}
    for other in others:
        if other[12:14] == b"\1\0":
            files.append(read_file(other, {})[0])
        else:
            volume = parse_header(other)
            slices[volume.number - 1] = other[HEADER + first.offset:]
    size, run = first.shard_len, first.run
    table = weights(first.columns * run, first.parity)
    made = [[None] * (first.codewords * run) for _ in range(first.columns)]
    for c in range(first.codewords):
        sound, sums = {}, {}
        for file in files:
            own = parse_record(file, file.records[c])
            sound, sums = sound | own[0], sums | own[1]
        shards, places = [], []
        for v in range(first.columns):
            block = (c + v * first.codewords // first.columns) % first.codewords
            held = bytes(first.pad) + slices.get(v, b"")
            for place in range(block * run, block * run + run):
                is_stored = place * size < first.pad + first.lens[v]
                shard = held[place * size:(place + 1) * size].ljust(size, b"\0")
                is_lost = is_stored and (v not in slices or v in sums and crc32(shard) != sums[v][place - block * run])
                shards.append(None if is_lost else shard)
                places.append((v, place))
        lost = [k for k, shard in enumerate(shards) if shard is None]
        need(len(lost) <= len(sound), "truncated", "more is lost than there is recovery for")
        used = sorted(sound)[:len(lost)]
        sides = [symbols(sound[r]) for r in used]
        for k, shard in enumerate(shards if lost else ()):
            if shard and any(shard):
                values = symbols(shard)
                sides = [[a ^ times(b, table[r][k]) for a, b in zip(side, values)] for r, side in zip(used, sides)]
        for k, values in zip(lost, solve([[table[r][k] for k in lost] for r in used], sides)):
            shards[k] = shard_of(values)
        for (v, place), shard in zip(places, shards):
            made[v][place] = shard
    columns = (b"".join(shards)[first.pad:first.pad + length] for shards, length in zip(made, first.lens))
    return first.front + b"".join(columns)
