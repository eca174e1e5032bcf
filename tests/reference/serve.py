#!/usr/bin/env python3
"""Reads one bundle after the other in one process, for a program that compares readers.

A request is a count (u32) and that many byte strings, each after its length (u32): a bundle and, for a delta bundle, its bases. The answer is
a line: `ok` and the SHA-256 of the content, the kind of failure, or `crash` and the exception. If the highest bit of the count is set, it is the
kinds of all faults: what this reader finds first, and then what it would find if it overlooked that.
"""
import contextlib, hashlib, io, struct, sys

from survivors import READER, Sites
from vectors import read_bundle

# The bit of a count that asks for all faults, and how many are looked for.
ALL, FAULTS = 1 << 31, 4

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

def faults(data, bases):
    """The kinds of the first faults. What comes after an overlooked one may also be its consequence."""
    sites, kinds = Sites(), []
    needs = [(module, module.need) for module in READER if hasattr(module, "need")]
    for module, _ in needs:
        module.need = sites.need
    while len(kinds) < FAULTS:
        sites.last = None
        kind = answer(data, bases)
        if sites.last is None or kind.startswith("crash"):
            break
        kinds.append(kind)
        sites.disabled.add(sites.last)
    for module, need in needs:
        module.need = need
    return " ".join(kinds)

def main(requests):
    while True:
        count = take_int(requests)
        data, *bases = [take(requests, take_int(requests)) for _ in range(count & ~ALL)]
        with contextlib.redirect_stderr(io.StringIO()):  # notes about envelopes
            line = faults(data, bases) if count & ALL else answer(data, bases)
        print(line, flush=True)

if __name__ == "__main__":
    main(sys.stdin.buffer)
