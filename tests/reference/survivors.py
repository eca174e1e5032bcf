#!/usr/bin/env python3
"""Disables each rejection of this reader in turn, and prints those that no vector notices: survivors.py FILE...

A rejection is a call of `need`. That of bytes after a structure's last field counts once for each structure.
"""
import ast, contextlib, io, os, signal, sys
from collections import defaultdict

import apply, difference, encoding, gvariant, index, ostree, recipes, recovery, request, sealift, suffix, trust, vectors, volume
from encoding import Reject

READER = [apply, difference, encoding, gvariant, index, ostree, recipes, recovery, request, sealift, suffix, trust, volume]
FOLDER = os.path.dirname(os.path.abspath(__file__))
# A reader that no longer rejects something may not end.
SECONDS = 20

class Sites:
    """The rejections by their places; some of them may be disabled."""

    def __init__(self):
        self.seen, self.disabled, self.last = set(), set(), None

    def need(self, holds, kind, message):
        site = site_of(sys._getframe(1))
        self.seen.add(site)
        if not holds and site not in self.disabled:
            self.last = site
            raise Reject(kind, message)

def place(frame):
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"

def site_of(frame):
    """The place of a call; that of the end of a structure is also the name of its section, or the place where it is read."""
    own, is_end = place(frame), frame.f_code.co_name == "end"
    if not is_end:
        return own
    while os.path.basename(frame.f_code.co_filename) in ("encoding.py", "contextlib.py"):
        if frame.f_code.co_name == "sections":
            payload, found = frame.f_locals["payload"], frame.f_locals["found"]
            return f"{own} {frame.f_locals['kind']} {next(name for name, cursor in found.items() if cursor is payload)}"
        if frame.f_code.co_name == "check_frame":
            return f"{own} frame"
        frame = frame.f_back
    return f"{own} {place(frame)}"

def calls():
    """The places of all calls of `need`."""
    for module in READER:
        with open(module.__file__, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "need":
                yield f"{os.path.basename(module.__file__)}:{node.lineno}"

def late(*_):
    raise TimeoutError

def result(path):
    """Whether the reader does with a vector what is expected; a reader that breaks does not."""
    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return vectors.run_vector(path) is None
    except Exception:
        return False
    finally:
        signal.alarm(0)
        vectors.open_base.cache_clear()

def main(paths):
    signal.signal(signal.SIGALRM, late)
    sites, rejected_by = Sites(), defaultdict(list)
    for module in READER + [vectors]:
        if hasattr(module, "need"):
            module.need = sites.need
    for path in paths:
        sites.last = None
        if not result(path):
            sys.exit(f"{path} does not agree")
        if sites.last:
            rejected_by[sites.last].append(path)
    used = {site.split(" ")[0] for site in sites.seen}
    sites.seen.update(site for site in calls() if site not in used)
    survivors = []
    for site in sorted(set(sites.seen)):
        sites.disabled = {site}
        if all(map(result, rejected_by[site])):
            survivors.append(site)
    for site in survivors:
        name, _, line = site.split(" ")[0].partition(":")
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            print(f"{site}: {file.read().splitlines()[int(line) - 1].strip()}")
    print(f"no vector notices {len(survivors)} of {len(sites.seen)} rejections")
    return 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
