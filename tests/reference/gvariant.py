"""GVariant in normal form, as GLib's documentation describes it: values are re-encoded, and must give the same bytes."""
import re
import struct

from encoding import need

BASIC = dict(b="?", y="B", n="<h", q="<H", i="<i", u="<I", h="<i", x="<q", t="<Q", d="<d")
OBJECT_PATH = re.compile(r"/|(/[A-Za-z0-9_]+)+")

def complete(types, at=0, depth=0):
    """Return the end of the type that begins at `at`."""
    if depth > 64:
        raise ValueError("types within types")
    code = types[at]
    if code in "am":
        return complete(types, at + 1, depth + 1)
    if code in "({":
        end, closing, count = at + 1, ")}"[code == "{"], 0
        while types[end] != closing:
            end, count = complete(types, end, depth + 1), count + 1
        if code == "{" and (count != 2 or types[at + 1] not in [*BASIC, *"sog"]):
            raise ValueError("a dictionary entry")
        return end + 1
    if code not in BASIC and code not in "sogv":
        raise ValueError("a type")
    return at + 1

def split(types):
    at, found = 0, []
    while at < len(types):
        end = complete(types, at)
        found.append(types[at:end])
        at = end
    return found

def alignment(kind):
    if kind[0] in "am":
        return alignment(kind[1:])
    if kind[0] in "({":
        return max(map(alignment, split(kind[1:-1])), default=1)
    return 8 if kind == "v" else 1 if kind in "sog" else struct.calcsize(BASIC[kind])

def fixed(kind):
    """Return the size of a fixed-size type; else None."""
    if kind in BASIC:
        return struct.calcsize(BASIC[kind])
    if kind[0] not in "({":
        return None
    size = 0
    for member in split(kind[1:-1]):
        if (own := fixed(member)) is None:
            return None
        size = size + -size % alignment(member) + own
    return size + -size % alignment(kind) or 1

def width(size):
    return next(w for w in (0, 1, 2, 4, 8) if size < 1 << 8 * w or not size)

def framed(body, ends):
    w = next(w for w in (1, 2, 4, 8) if len(body) + len(ends) * w < 1 << 8 * w)
    return body + b"".join(end.to_bytes(w, "little") for end in ends)

def write(kind, value):
    if kind in BASIC:
        return struct.pack(BASIC[kind], value)
    if kind in "sog":
        return value.encode() + b"\0"
    if kind == "v":
        return write(*value) + b"\0" + value[0].encode()
    if kind[0] == "m":
        return b"" if value is None else write(kind[1:], value) + b"\0" * (fixed(kind[1:]) is None)
    kinds = [kind[1:]] * len(value) if kind[0] == "a" else split(kind[1:-1])
    body, ends = b"", []
    for member, item in zip(kinds, value):
        body += bytes(-len(body) % alignment(member)) + write(member, item)
        ends.append(None if fixed(member) is not None else len(body))
    if kind[0] == "a":
        return framed(body, [end for end in ends if end is not None]) if fixed(kind[1:]) is None and value else body
    if (size := fixed(kind)) is not None:
        return body + bytes(size - len(body))
    return framed(body, [end for end in reversed(ends[:-1]) if end is not None])

DEPTH_MAX = 64

def nesting(kind):
    """Return how deeply a type nests containers."""
    if kind in BASIC or kind in "sog":
        return 0
    if kind == "v":
        return 1
    return 1 + max(map(nesting, [kind[1:]] if kind[0] in "am" else split(kind[1:-1])), default=0)

def read(kind, data, left=None):
    """`left` is how many nested containers are allowed, counted from the outermost variant."""
    if kind in BASIC:
        return struct.unpack(BASIC[kind], data)[0]
    if kind in "sog":
        text = data[:-1].decode()
        if "\0" in text or kind == "o" and not OBJECT_PATH.fullmatch(text) or kind == "g" and (split(text) is None or len(text) > 255):
            raise ValueError("a string")
        return text
    if kind == "v":
        cut = data.rindex(0)
        own = data[cut + 1:].decode()
        left = DEPTH_MAX if left is None else left
        if len(own) > 4096 or complete(own) != len(own) or nesting(own) >= left:
            raise ValueError("a variant's type")
        return own, read(own, data[:cut], left - 1)
    left = None if left is None else left - 1
    if kind[0] == "m":
        if not data:
            return None
        return read(kind[1:], data if fixed(kind[1:]) is not None else data[:-1], left)
    w = width(len(data))
    offset = lambda at: int.from_bytes(data[at:at + w], "little")
    if kind[0] == "a":
        element = kind[1:]
        if (size := fixed(element)) is not None:
            return [read(element, data[at:at + size], left) for at in range(0, len(data), size)]
        table = offset(len(data) - w) if data else 0
        ends = [offset(at) for at in range(table, len(data), w)] if data else []
        kinds = [element] * len(ends)
    else:
        kinds = split(kind[1:-1])
        loose = sum(fixed(member) is None for member in kinds[:-1])
        ends, stored = [], iter([offset(len(data) - w * n) for n in range(1, loose + 1)])
        for number, member in enumerate(kinds):
            last = number == len(kinds) - 1
            ends.append(None if fixed(member) is not None else len(data) - w * loose if last else next(stored))
    values, at = [], 0
    for member, end in zip(kinds, ends):
        at += -at % alignment(member)
        end = at + fixed(member) if end is None else end
        if not at <= end <= len(data):
            raise ValueError("an offset")
        values.append(read(member, data[at:end], left))
        at = end
    return values

def parse(kind, data):
    """Return the value that `data` encodes in normal form: lists for arrays and tuples, (type, value) for variants."""
    try:
        value = read(kind, data)
        good = write(kind, value) == data
    except (ValueError, IndexError, struct.error, StopIteration, RecursionError):
        good = False
    need(good, "index", f"an OSTree object is not {kind} in normal form")
    if "a{sv}" in kind:
        keys = [key for key, _ in (value if kind == "a{sv}" else value[0])]
        need(len(keys) == len(set(keys)), "index", "a key is in a dictionary twice")
    return value
