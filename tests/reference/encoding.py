"""The encoding of a Sealift bundle: fields (core 1), section lists (core 3.1) and zstd frames (core 8.1)."""
import struct
from contextlib import contextmanager
from itertools import chain, pairwise
from types import SimpleNamespace

import zstandard

class Reject(Exception):
    """The kind of failure (core 11.1) and a message."""

def need(holds, kind, message):
    if not holds:
        raise Reject(kind, message)

def ascends(items):
    return all(a < b for a, b in pairwise(items))

class Cursor:
    """The fields of one structure, consumed strictly one after the other (core 1)."""

    def __init__(self, data, kind, order="<"):
        self.rest, self.kind, self.order = memoryview(data), kind, order

    def take(self, count):
        need(count <= len(self.rest), self.kind, "a structure ends before its last field")
        taken, self.rest = bytes(self.rest[:count]), self.rest[count:]
        return taken

    def read(self, codes):
        return struct.unpack(self.order + codes, self.take(struct.calcsize("<" + codes)))

    def int(self, code):
        return self.read(code)[0]

    def string(self, code):
        return self.take(self.int(code))

    def planes(self, codes, count):
        """Return a column for each code; a column holds all lowest bytes first, then all second-lowest ones."""
        columns = [[self.take(count) for _ in range(struct.calcsize("<" + code))] for code in codes]
        rows = (bytes(chain.from_iterable(zip(*planes))) for planes in columns)
        return [struct.unpack(f"<{count}{code}", row) for code, row in zip(codes, rows)]

    def end(self):
        need(not self.rest, self.kind, "bytes are left after a structure's last field")

@contextmanager
def sections(data, kind, names):
    """The cursors of a section list by name (core 3.1); each must be at its end when the caller is done.

    Ids count from 1; a dash stands for one without a meaning. A name with an exclamation mark need not be there, but must be understood; one with
    a question mark is a mere hint.
    """
    names = {number: name for number, name in enumerate(names.split(), 1) if name != "-"}
    marks = {name.rstrip("!?"): name.strip("abcdefghijklmnopqrstuvwxyz") for name in names.values()}
    names, found, cursor, last = dict(zip(names, marks)), {}, Cursor(data, kind), -1
    while cursor.rest:
        number, flags, size = cursor.read("HHQ")
        name, payload = names.get(number), Cursor(cursor.take(size), kind)
        need(last < number and flags in (0, 1), kind, "section ids do not ascend, or unknown flags")
        last = number
        if name:
            need(flags == (marks[name] != "?"), kind, f"the flags of section {number}")
            found[name] = payload
        else:
            need(not flags, "unsupported", f"section {number} of the {kind} is not known")
            need(kind != "index", kind, f"neither an index nor a difference has section {number}")
    need(all(mark or name in found for name, mark in marks.items()), kind, "a section is missing")
    yield SimpleNamespace(**dict.fromkeys(marks) | found)
    for payload in found.values():
        payload.end()

def check_frame(data, size, window_log, kind):
    """Check that the headers are those of one zstd frame (core 8.1)."""
    try:
        head, last = zstandard.get_frame_parameters(data), False
        need(data[:4] == zstandard.FRAME_HEADER, kind, "not a zstd frame")
        need(not data[4] & 0x1f, kind, "the frame has a dictionary id, a checksum or reserved bits")
        need(head.content_size == size, kind, "the frame's content size is not the declared one")
        need(head.window_size <= 1 << window_log, kind, "the frame's window is over the bundle's")
        frame = Cursor(data[zstandard.frame_header_size(data):], kind)
        while not last:
            header = int.from_bytes(frame.take(3), "little")
            last, form, length = header & 1, header >> 1 & 3, header >> 3
            need(form != 3 and length <= min(head.window_size, 1 << 17), kind, "a block of a reserved type, or of too many bytes")
            frame.take(1 if form == 1 else length)  # form 1 is one repeated byte
        frame.end()
    except zstandard.ZstdError as error:
        raise Reject(kind, f"zstd: {error}") from None
    return head

def check_prefixed(data, size, window_log, kind):
    """Check the same for a frame with a prefix."""
    head = check_frame(data, size, window_log, kind)
    need(head.window_size <= size, kind, "the frame's window passes its content")

def unzstd(data, size, window_log, kind, prefix=b""):
    """Decode one zstd frame, after checking all its headers (core 8.1)."""
    (check_prefixed if prefix else check_frame)(data, size, window_log, kind)
    try:
        before = zstandard.ZstdCompressionDict(prefix, dict_type=zstandard.DICT_TYPE_RAWCONTENT) if prefix else None
        return zstandard.ZstdDecompressor(dict_data=before).decompress(data, max_output_size=size)
    except zstandard.ZstdError as error:
        raise Reject(kind, f"zstd: {error}") from None
