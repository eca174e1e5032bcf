#!/usr/bin/env python3
"""Reads one bundle after the other in one process, for a program that compares readers.

A request is a count (u32) and that many byte strings, each after its length (u32): a bundle and, for a delta bundle, its bases. The answer is
a line: `ok` and the SHA-256 of the content, the kind of failure, or `crash` and the exception.
"""
import contextlib, hashlib, io, struct, sys

from vectors import read_bundle

def take(file, count):
    data = file.read(count)
    if len(data) < count:
        sys.exit()
    return data

def take_int(file):
    return struct.unpack("<I", take(file, 4))[0]

def answer(data, bases):
    try:
        kind, content = read_bundle(data, "apply" if bases else "deep", {}, bases)
    except Exception as error:
        return f"crash {error!r}".replace("\n", " ")
    return f"{kind} {hashlib.sha256(content.encode()).hexdigest()}" if content else kind

def main(requests):
    while True:
        data, *bases = [take(requests, take_int(requests)) for _ in range(take_int(requests))]
        with contextlib.redirect_stderr(io.StringIO()):  # notes about envelopes
            line = answer(data, bases)
        print(line, flush=True)

if __name__ == "__main__":
    main(sys.stdin.buffer)
