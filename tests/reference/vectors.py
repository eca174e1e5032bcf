#!/usr/bin/env python3
"""Runs vector files (spec/vectors/README.md): vectors.py FILE..., or prints the content of each: vectors.py --json FILE..."""
import io, os, sys
from collections import defaultdict
from functools import lru_cache

import recovery
from channel import of_list, parse_list
from content import document, of_bundle, of_request
from encoding import Reject, need
from hashes import verity
from index import parse_index
from request import complete, parse_request
from sealift import LIMITS, Bundle
from trust import POLICY
from volume import join, read_alone

@lru_cache(256)
def open_base(data):
    return Bundle(io.BytesIO(data), {})

def read_bundle(data, depth, policy, bases):
    """Return `ok` or the kind of failure, and the content."""
    try:
        bundle = Bundle(io.BytesIO(data), policy)
        if depth == "verify":
            bundle.check_chunks()
        if depth in ("deep", "apply") and bundle.difference:
            bundle.check_shapes()
        if depth == "apply" and bundle.difference:
            bundle.complete([open_base(base) for base in bases])
        if depth == "apply" or depth == "deep" and not bundle.difference:
            bundle.check_objects()
    except Reject as reject:
        kind, _ = reject.args
        return kind, None
    if bundle.difference and depth != "apply":
        return "ok", None
    return "ok", document(of_bundle(bundle))

def read_request(data, bases):
    """Return the same for a request."""
    try:
        request = parse_request(data)
        indexes = [Bundle(io.BytesIO(base), {}).index for base in bases]
        index = complete(request, [row for known in indexes for row in zip(known.sizes, known.ids)])
        parsed = parse_index(index, LIMITS["entries"])
        need(not bases or verity(index) == request.digest, "index", "another index comes out")
    except Reject as reject:
        kind, _ = reject.args
        return kind, None
    return "ok", document(of_request(request, parsed))

def read_list(data, policy):
    """Return the same for the list of a channel."""
    try:
        return "ok", document(of_list(parse_list(data, policy)))
    except Reject as reject:
        kind, _ = reject.args
        return kind, None
def read_volume(data, policy, others):
    """Return the same for a volume: alone, or in a set with others, which is a bundle."""
    try:
        if not others:
            return "ok", document(read_alone(data, policy))
        bundle = join([data, *others])
    except Reject as reject:
        kind, _ = reject.args
        return kind, None
    return read_bundle(bundle, "deep", policy, [])

def read_recovery(data, policy, others):
    """Return the same for a recovery file: alone, or with others and volumes, from which the bundle is made again."""
    try:
        if not others:
            return "ok", document(recovery.read_alone(data, policy))
        bundle = recovery.repair(data, others)
    except Reject as reject:
        kind, _ = reject.args
        return kind, None
    return read_bundle(bundle, "deep", policy, [])

# Encoders of recipes that this reader has not: it checks their parameters, and makes nothing with them.
LACKS = {"lz4", "xz", "zstd"}

def split(path):
    """Return a vector file's header, and the input."""
    with open(path, "rb") as file:
        return file.read().split(b"\n\n", 1)

def read(path):
    """Read a vector's input; return what is expected, what is found, and the content."""
    header, data = split(path)
    keys = defaultdict(list)
    for line in header.decode().split("\n"):
        key, value = line.split(": ", 1)
        keys[key].append(value)
    policy = {key: keys.pop(key) for key in POLICY if key in keys}
    [expected], [depth] = keys.pop("expect"), keys.pop("check", ["deep"])
    [needs], _ = keys.pop("needs"), keys.pop("comment", None)
    if expected == "ok" and LACKS.intersection(needs.split()):
        expected = "unsupported"
    bases = [split(os.path.join(os.path.dirname(path), base + ".vec"))[1] for base in keys.pop("base", ())]
    assert not keys, f"{path}: {keys}"
    if depth == "list":
        return expected, *read_list(data, policy)
    if depth == "volume":
        return expected, *read_volume(data, policy, bases)
    if depth == "recovery":
        return expected, *read_recovery(data, policy, bases)
    return expected, *(read_request(data, bases) if depth == "request" else read_bundle(data, depth, policy, bases))

def run_vector(path):
    """Run one vector file; return what does not match."""
    expected, found, content = read(path)
    if found != expected:
        return f"{path}: it is {found}"
    if content is not None:
        with open(path.removesuffix(".vec") + ".json", encoding="utf-8") as file:
            if file.read() != content:
                return f"{path}: the content is another"
    return None

def main(arguments):
    if arguments[:1] == ["--json"]:
        sys.stdout.reconfigure(encoding="utf-8")
        for path in arguments[1:]:
            _, found, content = read(path)
            sys.stdout.write(content or f"{found}\n")
        return 0
    failures = list(filter(None, map(run_vector, arguments)))
    print(*failures, f"{len(arguments) - len(failures)} of {len(arguments)} vectors agree", sep="\n")
    return 1 if failures else 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
