"""Byte differences: chunks of codec 3 (delta 8)."""
from encoding import Cursor, check_frame, need, unzstd

def parse_suffix(stored, size, prefix_len, window_log):
    """Return the runs and the two frames after them, checked against the lengths of chunk and prefix."""
    table = Cursor(stored, "chunk")
    count, added, *lens = table.read("IIII")
    need(0 < count <= -(-size // 16) and added <= size, "chunk", "no run, or more than the chunk may have")
    control, added_frame = map(table.take, lens)
    copied_frame = bytes(table.rest)
    control = Cursor(unzstd(control, 16 * count, window_log, "chunk"), "chunk")
    runs = list(zip(*control.planes("IIq", count)))
    for frame, length in (added_frame, added), (copied_frame, size - added):
        if length:
            check_frame(frame, length, window_log, "chunk")
        need(length or not frame, "chunk", "a frame of nothing")
    place = 0
    for add, copy, seek in runs:
        need(add or copy, "chunk", "a run that makes nothing")
        place += seek
        need(0 <= place and place + add <= prefix_len, "chunk", "a run leaves the prefix")
        place += add
    sums = sum(add for add, _, _ in runs), sum(copy for _, copy, _ in runs)
    need(sums == (added, size - added), "chunk", "the runs make another number of bytes")
    return runs, added_frame, copied_frame

def unsuffix(stored, size, window_log, prefix):
    """Return the bytes of a chunk, made from those of its prefix."""
    runs, *frames = parse_suffix(stored, size, len(prefix), window_log)
    sums = sum(add for add, _, _ in runs), sum(copy for _, copy, _ in runs)
    added, copied = (unzstd(frame, length, window_log, "chunk") if length else b"" for frame, length in zip(frames, sums))
    added, copied, out, place = Cursor(added, "chunk"), Cursor(copied, "chunk"), bytearray(), 0
    for add, copy, seek in runs:
        place += seek
        out += bytes(a + b & 0xff for a, b in zip(added.take(add), prefix[place:place + add]))
        out += copied.take(copy)
        place += add
    return bytes(out)
