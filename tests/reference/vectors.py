#!/usr/bin/env python3
"""Runs vector files (spec/vectors/README.md): vectors.py FILE..."""
import hashlib, io, os, sys
from collections import defaultdict

from encoding import Reject, need
from hashes import verity
from index import parse_index
from request import complete, parse_request
from sealift import LIMITS, Bundle
from trust import POLICY

def read_bundle(data, depth, policy, bases):
    """Return the fields that a vector states about its input, as this reader finds them."""
    try:
        bundle = Bundle(io.BytesIO(data), policy)
        if depth == "verify":
            bundle.check_chunks()
        if depth in ("deep", "apply") and bundle.difference:
            bundle.check_shapes()
        if depth == "apply":
            bundle.complete([Bundle(io.BytesIO(base), {}) for base in bases])
        if depth == "apply" or depth == "deep" and not bundle.difference:
            bundle.check_objects()
    except Reject as reject:
        kind, _ = reject.args
        return {"expect": kind}
    unknown = sum(kind not in (1, 2) for kind, _ in bundle.envelopes)
    listing = "".join(bundle.listing()).encode()
    return {"expect": "ok", "listing": hashlib.sha256(listing).hexdigest(), "unknown-envelopes": str(unknown)}

def read_request(data, bases):
    """Return the same for a request, with the target's content, if known."""
    try:
        request = parse_request(data)
        indexes = [Bundle(io.BytesIO(base), {}).index for base in bases]
        index = complete(request, [row for known in indexes for row in zip(known.sizes, known.ids)])
        parse_index(index, LIMITS["entries"])
        need(not bases or verity(index) == request.digest, "index", "another index comes out")
    except Reject as reject:
        kind, _ = reject.args
        return {"expect": kind}
    return {"expect": "ok"}

def split(path):
    """Return a vector file's header, and the input."""
    with open(path, "rb") as file:
        return file.read().split(b"\n\n", 1)

def run_vector(path):
    """Run one vector file; return a line for each key that does not agree."""
    header, data = split(path)
    keys = defaultdict(list)
    for line in header.decode().split("\n"):
        key, value = line.split(": ", 1)
        keys[key].append(value)
    policy = {key: keys.pop(key) for key in POLICY if key in keys}
    [depth], _ = keys.pop("check", ["deep"]), keys.pop("comment", None)
    bases = [split(os.path.join(os.path.dirname(path), base + ".vec"))[1] for base in keys.pop("base", ())]
    of_input = read_request(data, bases) if depth == "request" else read_bundle(data, depth, policy, bases)
    found = {"unknown-envelopes": "0"} | of_input
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
