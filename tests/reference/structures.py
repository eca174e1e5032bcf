#!/usr/bin/env python3
"""Reads vectors with nothing but spec/structures.json and a decoder of frames: structures.py FILE..."""
import io, json, re, sys
from functools import partial
from pathlib import Path

import recovery
from content import base, escape
from encoding import Cursor, Reject, check_prefixed, need, unzstd
from recipes import SUMS
from sealift import ROOT_FIELDS, Bundle
from vectors import LACKS, split
from volume import parse_header

SPEC = Path(__file__).resolve().parents[2] / "spec"
STRUCTURES = json.loads((SPEC / "structures.json").read_text("utf-8"))["structures"]
NUMBERS = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "i64": 8, "u32be": 4}
SEEN = set()  # the structures that a vector has
# Failures that do not concern the form, and names of vectors in which only the form is wrong.
WELL_FORMED = "ok object path untrusted revoked expired downgrade incompatible".split()
MALFORMED = re.compile("section|fields|preamble|ref-kind|repository-kind|images-(algorithm|version|digest|left)")

class Values(list):
    """A list of elements; a name stands for the field of each."""
    def __getattr__(self, name):
        return Values(getattr(value, name) for value in self)

class Structure:
    """The fields of a structure by name. A part of known size is read when it is needed, at the latest at the end."""
    def __init__(self, type_, cursor, around):
        SEEN.add(type_)
        self.of, self.own, self.cursor, self.around, self.found = type_, STRUCTURES[type_], cursor, around, {}
        if "sections" in self.own:
            self.take_sections()
        for field in self.own.get("fields", ()):
            if self.evaluate(field.get("when", 1)) and not self.evaluate(field.get("unless", 0)):
                self.found[field["name"]] = self.take(field)
                self.check_value(field)
        for name in self.found:
            getattr(self, name)

    def __getattr__(self, name):
        if name not in self.found:
            need(any(name == row["name"] for row in self.own.get("sections", ())), self.of, f"{name} is not there")
            return None
        if callable(self.found[name]):
            self.found[name] = self.found[name]()
        return self.found[name]

    def __getitem__(self, name):
        """A name in an expression."""
        for row in self.own.get("derived", ()):
            if row["name"] == name:
                return self.evaluate(row["expression"]) if "expression" in row else DERIVED[self.of, name](self)
        if name == "rest":
            return len(self.cursor.rest)
        if name not in self.found and self.around is None:
            raise KeyError(name)
        return getattr(self, name) if name in self.found else self.around[name]

    def evaluate(self, expression):
        def types(column):
            modes = self.around["attributes"].rows.mode
            need(max(column, default=-1) < len(modes), self.of, "an attribute row that there is not")
            return [modes[row] >> 12 for row in column]
        def number(column, *values):
            return sum(map(values.count, column))
        return eval(str(expression), {"__builtins__": {}, "sum": sum, "number": number, "types": types}, self)

    def take_sections(self):
        rows, last = {row["id"]: row for row in self.own["sections"]}, -1
        while self.cursor.rest:
            section = Structure("section", self.cursor, self)
            row = rows.get(section.id, {"must_understand": self.own["only"]})
            good = last < section.id and section.flags == row["must_understand"] and (section.id in rows or not self.own["only"])
            need(good, self.of, f"section {section.id}")
            last = section.id
            if section.id in rows:
                self.found[row["name"]] = partial(whole, row["type"], section.payload, self)
        for row in rows.values():
            good = row["required"] is False or bool(self.evaluate(row["required"])) == (row["name"] in self.found)
            need(good, self.of, f"section {row['name']} is missing or left")

    def take(self, field):
        type_, found = field["type"], Values()
        if "planes" in field:
            planes = [self.cursor.take(self.evaluate(field["planes"])) for _ in range(NUMBERS[type_])]
            return Values(integer(type_, bytes(row)) for row in zip(*planes))
        if "until" in field:
            first = STRUCTURES[type_]["fields"][0]["type"] if type_ in STRUCTURES else type_
            while integer(first, bytes(self.cursor.rest[:NUMBERS[first]])) != field["until"]:
                found.append(self.take_one(field))
            return found
        if "count" not in field:
            return self.take_one(field)
        for self.found["i"] in range(self.evaluate(field["count"])):
            one = self.take_one(field)
            found.append(one() if callable(one) else one)
        self.found.pop("i", None)
        return found

    def take_one(self, field):
        type_ = field["type"]
        if type_ in NUMBERS:
            return integer(type_, self.cursor.take(NUMBERS[type_]))
        if "size" in field:
            data = self.take_part(field)
            return data if type_ == "bytes" else partial(whole, type_, data, self)
        return self.cursor.take(32) if type_ == "hash" else structure(type_, self.cursor, self)

    def take_part(self, field):
        size, decoded = self.evaluate(field["size"]), self.evaluate(field.get("decoded", 0))
        need(size >= 0, self.of, f"there is no room for {field['name']}")
        data = self.cursor.take(size)
        if "prefix" in field and size:
            check_prefixed(data, decoded, 31, self.of)
        elif "decoded" in field and size:
            data = unzstd(data, decoded, 31, self.of)
        else:
            need(not decoded, self.of, f"there is no frame of {field['name']}")
        return data

    def check_value(self, field):
        found, want = self.found[field["name"]], field.get("value")
        each = found if isinstance(found, list) else [found]
        if isinstance(want, str):
            good = found == (list(bytes.fromhex(want)) if field["type"] == "u8" else want.encode())
        else:
            good = all(want in (None, one) and text(one) in field.get("values", [text(one)]) for one in each)
        need(good, self.of, f"{field['name']} is {found}")

def text(value):
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)

def integer(type_, data):
    return int.from_bytes(data, "big" if type_.endswith("be") else "little", signed=type_[0] == "i")

def structure(type_, cursor, around):
    if "match" not in (own := STRUCTURES[type_]):
        return Structure(type_, cursor, around)
    SEEN.add(type_)
    value = text(around.evaluate(own["match"]))
    need(value in own["cases"] or "else" in own, type_, f"{value} is no case")
    return structure(own["cases"].get(value) or own["else"], cursor, around)

def whole(type_, data, around=None):
    cursor = Cursor(data, type_)
    found = structure(type_, cursor, around)
    cursor.end()
    return found

def pieces(inner):
    piece, part = 1 << inner["root"].maxima.piece_log2, inner["difference" if inner["root"].bases else "index"]
    leaves = inner.around.recipes.size if inner.around.recipes else []
    return sum(-(-size // piece) for size in part.objects.size + leaves if size > piece)

def edits(types, inner, ops=(3, 4, 12, 13, 14, 15)):
    given, rows = iter(inner["changes"].type), iter(inner.evaluate("types(changes.attributes)"))
    kinds = [next(rows) if op in (3, 4, 9, 11, 13, 15) else next(given) if op > 8 else 4 for op in inner["edits"].op]
    return sum(op in ops and type_ in types for op, type_ in zip(inner["edits"].op, kinds))

# The derived numbers that have no expression.
DERIVED = {
    ("pieces", "m"): pieces, ("edited_directories", "d"): partial(edits, (4,), ops=(0, 3, 4, *range(9, 16))),
    ("edited_regulars", "r"): partial(edits, (8,)), ("edited_symlinks", "s"): partial(edits, (10,)),
    ("edited_devices", "v"): partial(edits, (2, 6))}

def table(of, names):
    return list(zip(*(getattr(of, name) for name in names.split())))

def compare_bundle(file, data, content):
    """Yield pairs of what the description finds, and what the second reader finds or the JSON has."""
    reader = Bundle(io.BytesIO(data), {})
    root, layout, parts = file.root, file.layout, reader.layout
    for section, (_, names) in ROOT_FIELDS.items():
        yield table(Values([getattr(root, section)]), names), table(Values([reader.root]), names)
    yield [text(root.identity.name), *map(text, root.identity.tags.tag)], [content["name"], *content["compatible"]]
    bases, images = (part.rows if part else Values() for part in (root.bases, root.images))
    yield table(images, "ref version algorithm"), [row[:3] for row in reader.root.images]
    yield [base(*row) for row in table(bases, "version name index_digest index_len")], content.get("bases", [])
    yield table(layout.chunks, "codec stored_len len digest"), list(zip(parts.codecs, parts.stored, parts.lens, parts.digests))
    for size, chunk in zip(layout.chunks.len, file.chunks):
        if chunk.of == "byte_difference":
            yield [sum(chunk.control.add), sum(chunk.control.copy)], [chunk.added, size - chunk.added]
    yield layout.pieces.chunk, [max(part.chunk, -1) + 1 for number in parts.values for part in parts.parts[number]]
    extents = [(4096 * start, 4096 * (start + size)) for start, size in table(layout.holes, "start len")]
    yield [layout.holes.object, extents], [list(parts.holes), sum(parts.holes.values(), [])]
    yield table(layout.prefixes, "object offset len") if layout.prefixes else [], sum(parts.prefixes.values(), [])
    if layout.recipes:
        own, sums, there = layout.recipes, root.recipes, parts.recipes
        yield table(own, "size id"), list(zip(there.sizes, there.ids))
        yield table(Values([sums]), SUMS), table(Values([reader.root.recipes]), SUMS)
        yield table(sums.encoders, "encoder bytes"), reader.root.recipes.encoders
        yield own.object, list(there.made)
        segments = [part for of in (*there.views, *there.made.values()) for part in of]
        ranges = [part for segment in segments for part in segment.ranges]
        yield own.kind, [segment.kind for segment in segments]
        yield own.zeros, [segment.size for segment in segments if segment.kind == 1]
        yield table(own, "coder encoded_len inputs"), [(segment.how, segment.size, len(segment.ranges)) for segment in segments if segment.kind == 2]
        yield table(own, "codec decoded_len"), [(segment.how, segment.size) for segment in segments if segment.kind == 3]
        yield table(own, "part len"), [(of, end - start) for of, start, end in ranges]
        coders = [(row.encoder, *(getattr(row.params, name) for name in row.params.found)) for row in own.rows]
        yield coders, there.coders
    yield table(layout.repository.files, "kind bytes") if layout.repository else [], parts.repository
    if bases:
        own, there = file.difference, reader.difference
        yield [root.bases.prefix_len, *table(own.refs.rows, "kind name from")], [reader.root.prefix_len, *there.refs]
        yield table(own.changes, "mtime mtime_ns"), [edit.time for edit in there.edits if edit.time]
        yield table(own.times, "from from_ns to to_ns"), [(*old, *new) for old, new in there.times.items()]
        yield own.directories.edits + own.links.edit, [edit.size for edit in there.edits if edit.has_block] + \
            [edit.link for edit in there.edits if edit.link is not None]
    else:
        own, there = file.index, reader.index
        yield [own.entries.link, own.directories.children], [list(there.links), list(there.children.values())]
        if own.ostree:
            yield [own.ostree.object, own.ostree.objects], [list(there.ostree.column), [data for _, data in there.ostree.objects]]
        yield from compare_index(own, content)

def compare_index(index, content):
    refs, entries = content["refs"], content["entries"]
    yield table(index.refs.rows, "name kind"), [(row["name"].encode(), int(row["kind"] == "ostree")) for row in refs]
    trees = [row["name"] for row in refs if row["kind"] == "tree"]
    names = [row["path"].split("/")[-1] for row in entries if row["ref"] in trees and row["path"] != "."]
    yield list(map(escape, index.entries.names)), names
    # The inodes of commits follow those of the section.
    rows, used = {row["inode"]: row for row in entries}, [index.attributes.rows[row] for row in index.inodes.attributes]
    wanted = [rows[inode] for inode in range(index.inodes.count)]
    yield [(row.mode & 0o7777, row.uid, row.gid) for row in used], [(row["mode"], row["uid"], row["gid"]) for row in wanted]
    yield table(index.inodes, "mtime mtime_ns"), [(row["mtime"], row["mtime_ns"]) for row in wanted]
    yield table(index.devices, "major minor"), [(row["major"], row["minor"]) for row in wanted if "major" in row]
    # An object may belong only to a commit's parent.
    ids = index.objects.start if index.of == "outline" else index.objects.id
    objects = {(row["size"], row["id"][:16]) for row in entries if "id" in row}
    yield {(size, id_[:8].hex()) for size, id_ in zip(index.objects.size, ids)} & objects, objects

def compare_list(own, content):
    yield [own.sequence, own.created, own.expires, own.name], [content[key] for key in ("sequence", "created", "expires")] + [content["name"].encode()]
    yield table(own.rows, "file version created len"), [(row["file"].encode(), row["version"], row["created"], row["len"]) for row in content["files"]]
    yield [digest.hex() for digest in own.rows.index_digest], [row["index_digest"] for row in content["files"]]

def compare_volume(file, data, content):
    volume = parse_header(data)
    names = "number count head_len offset len file_len set".split()
    yield [getattr(file, name) for name in names], [getattr(volume, name) for name in names]
    if "number" in content:  # not that of the bundle that a set makes
        yield [file.number, file.count, text(file.root.identity.name)], [content[key] for key in ("number", "count", "name")]

def compare_recovery(file, data, content):
    own = recovery.parse(data)
    names = "number count head_len offset len file_len set shard_len run parity pad columns".split()
    yield [getattr(file, name) for name in names], [getattr(own, name) for name in names]
    yield list(file.start), own.starts
    if "number" in content:
        yield [file.number, file.count, text(file.root.identity.name)], [content[key] for key in ("number", "count", "name")]

COMPARISONS = {"bundle": compare_bundle, "volume": compare_volume, "recovery": compare_recovery,
               "signed_list": lambda file, _, content: compare_list(file.list, content),
               "request": lambda file, _, content: compare_index(file.outline, content)}

def run(path):
    """Check one vector; return whether it is as described."""
    header, data = split(path)
    keys = dict(line.split(": ", 1) for line in header.decode().split("\n"))
    type_ = {"request": "request", "list": "signed_list", "volume": "volume", "recovery": "recovery"}.get(keys.get("check"), "bundle")
    try:
        file = whole(type_, data)
    except Reject as reject:
        assert keys["expect"] not in WELL_FORMED, f"{path}: {reject}"
        return False
    if keys["expect"] == "ok" and not LACKS.intersection(keys["needs"].split()):
        content = json.loads(path.with_suffix(".json").read_text("utf-8"))
        for found, want in COMPARISONS[type_](file, data, content):
            assert found == want, f"{path}: {found} is not {want}"
    assert keys["expect"] == "ok" or not MALFORMED.search(path.name), f"{path} is as described"
    return True

def main(paths):
    # The sections are those of the registry, and the headings that are cited exist.
    row = r"^\| (root|layout|index|difference) \| (\d+)(?: to \d+)? \| (yes|no) \| ([^|*]+) \|(?! \*reserved)"
    rows = re.findall(row, (SPEC / "registry.md").read_text("utf-8"), re.M)
    registered = {(of, int(first) + at, flag == "yes", name)
                  for of, first, flag, names in rows for at, name in enumerate(names.split(", "))}
    described = {(of.replace("outline", "index"), row["id"], row["must_understand"], row["name"])
                 for of, own in STRUCTURES.items() for row in own.get("sections", ())}
    assert described == registered, described ^ registered
    for part, section in re.findall(r"([a-z-]+) ([A0-9.]+)", " ".join(own["in"] for own in STRUCTURES.values())):
        assert re.search(rf"^##+ {re.escape(section)}\.? ", (SPEC / f"{part}.md").read_text("utf-8"), re.M), f"{part} {section}"
    good = sum(map(run, map(Path, paths)))
    assert SEEN == STRUCTURES.keys(), f"no vector has {STRUCTURES.keys() - SEEN}"
    print(f"{good} of {len(paths)} vectors are as described")

if __name__ == "__main__":
    main(sys.argv[1:])
