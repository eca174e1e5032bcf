#!/usr/bin/env python3
"""Runs vector files (spec/vectors/README.md): vectors.py FILE..."""
import hashlib, io, sys
from collections import defaultdict

from encoding import Reject
from sealift import Bundle
from trust import POLICY

def read_bundle(data, depth, policy):
    """What a vector expects of its input, as this reader finds it."""
    try:
        bundle = Bundle(io.BytesIO(data), policy)
        if depth == "verify":
            bundle.check_chunks()
        if depth == "deep":
            bundle.check_objects()
    except Reject as reject:
        kind, _ = reject.args
        return {"expect": kind}
    unknown = sum(kind != 1 for kind, _ in bundle.envelopes)
    listing = "".join(bundle.listing()).encode()
    return {"expect": "ok", "listing": hashlib.sha256(listing).hexdigest(), "unknown-envelopes": str(unknown)}

def run_vector(path):
    """Run one vector file; gives a line for each of its keys that does not agree."""
    with open(path, "rb") as file:
        header, data = file.read().split(b"\n\n", 1)
    keys = defaultdict(list)
    for line in header.decode().split("\n"):
        key, value = line.split(": ", 1)
        keys[key].append(value)
    policy = {key: keys.pop(key) for key in POLICY if key in keys}
    [depth], _ = keys.pop("check", ["deep"]), keys.pop("comment", None)
    found = {"unknown-envelopes": "0"} | read_bundle(data, depth, policy)
    wanted = {"unknown-envelopes": ["0"]} | keys
    return [f"{path}: {key} is {found.get(key)}" for key in wanted if wanted[key] != [found.get(key)]]

def main(paths):
    failures = [lines for lines in map(run_vector, paths) if lines]
    for lines in failures:
        print(*lines, sep="\n")
    print(f"{len(paths) - len(failures)} of {len(paths)} vectors agree")
    return 1 if failures else 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
