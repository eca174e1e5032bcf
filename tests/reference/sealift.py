#!/usr/bin/env python3
"""A second reader of Sealift bundles, written only from spec/, whose parts and sections are given in brackets.

This module reads the file from its first byte to its last, and uses the other modules for parts of it.
"""
import argparse, hashlib, io, re, struct, sys
from bisect import bisect_right
from collections import defaultdict, namedtuple
from functools import lru_cache
from itertools import accumulate, islice, pairwise
from types import SimpleNamespace

from blake3 import blake3

from apply import apply_difference
from content import compact, entries
from difference import parse_difference
from encoding import Cursor, Reject, ascends, check_frame, check_prefixed, need, sections, unzstd
from hashes import blocks, chaining_value, merge, verity, verity_of_blocks
from index import parse_index
from ostree import parse_repository
from recipes import check_limits, make, of_bases, parse_recipes, parse_sums, sums_of
from suffix import parse_suffix, unsuffix
from trust import POLICY, check_signatures, judge

MAGIC = b"\x89SLFT\r\n\x1a"
NAME = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}")
ROOT_FIELDS = {
    "identity": ("Qqq", "version created expires"),
    "contents": ("32sQQ32sQQ32s", "index_digest index_len index_stored index_blake3 "
                 "layout_len layout_stored layout_blake3"),
    "maxima": ("BBHIQQQQQQQQII", "piece_log2 window_log refs depth entries paths inodes objects logical disk "
               "chunks chunks_stored chunk_len chunk_stored")}
DIGEST_LEN = {1: 32, 2: 64}
LIMITS = {"index_len": 1 << 30, "layout_len": 1 << 30, "chunk_len": 1 << 27, "index_stored": (1 << 30) + (1 << 20),
          "layout_stored": (1 << 30) + (1 << 20), "chunk_stored": (1 << 27) + (1 << 20), "window_log": 27, "depth": 4096, "entries": 1 << 24,
          "paths": 1 << 31, "logical": 1 << 42, "difference_len": 1 << 30, "prefix_len": 1 << 30, "base_index_len": 1 << 30}

def base(fields):
    """The version, name, digest and length of a base, as in root and request (delta 3 and requests.md)."""
    version, name = fields.int("Q"), fields.string("B")
    need(NAME.fullmatch(name) or not name and not version, "header", "name and version of a base")
    return version, name, *fields.read("32sQ")

def parse_root(data):
    """The root's identity, contents and maxima, as one record (core 4)."""
    root, pairs = SimpleNamespace(), []
    with sections(data, "header", "identity contents maxima annotations? bases! images? - - recipes!") as found:
        for section, (codes, names) in ROOT_FIELDS.items():
            vars(root).update(zip(names.split(), vars(found)[section].read(codes)))
        root.name = found.identity.string("B")
        root.tags = [found.identity.string("B") for _ in range(found.identity.int("H"))]
        if notes := found.annotations:
            pairs = [(notes.string("B"), notes.string("H")) for _ in range(notes.int("H"))]
            need(pairs, "header", "an empty list of annotations")
        root.bases, root.difference_len, root.prefix_len = [], 0, 0
        if bases := found.bases:
            root.difference_len, root.prefix_len, count = bases.read("QIH")
            root.bases = [base(bases) for _ in range(count)]
            need(count, "header", "a delta bundle without a base")
        root.images = parse_images(found.images, root.refs) if found.images else []
        root.recipes = parse_sums(found.recipes) if found.recipes else None
        digests = {root.index_digest, *(digest for _, _, digest, _ in root.bases)}
        need(len(digests) == len(root.bases) + 1, "header", "a base stands twice, or is what is installed")
        root.base_index_len = max((size for *_, size in root.bases), default=0)
    root.annotations, keys = pairs, [key for key, _ in pairs]
    need(all(map(NAME.fullmatch, [root.name, *root.tags, *keys])), "header", "the form of a name, tag or key")
    need(ascends(root.tags) and ascends(keys), "header", "compatible tags or annotations do not ascend")
    need(all(text.decode(errors="ignore").encode() == text for _, text in pairs), "header", "not UTF-8")
    ranges = 12 <= root.piece_log2 <= 26 and 10 <= root.window_log <= 31
    need(ranges, "header", "piece_log2 or window_log is out of its range")
    return root

def parse_preamble(data):
    """The length of the root (core 3)."""
    _, version, root_len, reserved = struct.unpack("<8sII16s", data)
    need(version == 0, "unsupported", f"format version {version}")
    ranges = 1 <= root_len <= 1 << 16 and reserved == bytes(16)
    need(ranges, "header", "root_len or reserved bytes are out of their ranges")
    return root_len

def parse_images(section, refs):
    """The composefs images that the trees make, as (ref, version, algorithm, digest) (images 2)."""
    images = []
    for _ in range(section.int("H")):
        ref, version, algorithm = section.read("HBB")
        need(version < 2 and algorithm in DIGEST_LEN, "unsupported", "a version or algorithm of an image")
        need(ref < refs, "header", "an image of a ref that there is not")
        digest = section.take(DIGEST_LEN.get(algorithm, 0))
        need(not images or images[-1][:3] < (ref, version, algorithm), "header", "images do not ascend")
        images.append((ref, version, algorithm, digest))
    need(images, "header", "there are no images")
    return images

def parse_envelopes(cursor):
    """Envelopes as (kind, body), to their end (core 5)."""
    envelopes = []
    while kind := cursor.int("H"):
        envelopes.append((kind, cursor.string("I")))
    need(ascends(envelopes), "header", "envelopes do not ascend")
    return envelopes

def parse_area(data, before):
    """The envelopes; `before` is everything before the area (core 5)."""
    area = Cursor(data[4:-32], "header")
    envelopes = parse_envelopes(area)
    need(not any(area.rest), "header", "fill that is not zero")
    need(blake3(before + data[:-32]).digest() == data[-32:], "header", "area_blake3 does not agree")
    return envelopes

def spans(holes, start, end):
    """The data between two offsets of an object, without its holes (core 7.1)."""
    for hole, after in holes[bisect_right(holes, start, key=lambda hole: hole[1]):]:
        if hole >= end:
            break
        if start < hole:
            yield start, hole
        start = after
    if start < end:
        yield start, end

# The bytes `start` to `end` of an object, whose data begins at `at` in a chunk; chunk -1 if there is none, and -2 if a recipe makes them.
Part = namedtuple("Part", "chunk at start end")

def parse_holes(table, sizes):
    """By object the (start, end) of each of its holes (core 7.1)."""
    objects, extents = table.planes("II", table.int("I"))
    starts, lens = table.planes("QQ", sum(extents))
    good = ascends(objects) and all(extents) and min(lens, default=16) >= 16
    need(good, "layout", "objects with holes do not ascend or have none, or a hole of less than 16 blocks")
    runs = iter([(4096 * start, 4096 * (start + length)) for start, length in zip(starts, lens)])
    holes = {number: list(islice(runs, count)) for number, count in zip(objects, extents)}
    for number, own in holes.items():
        need(all(a[1] < b[0] for a, b in pairwise(own)), "layout", "holes touch or do not ascend")
        inside = number < len(sizes) and own[-1][1] <= sizes[number] // 4096 * 4096
        need(inside, "layout", "holes pass an object's whole blocks")
    return holes

def parse_prefixes(table, layout, base_objects):
    """By chunk the ranges of its prefix (delta 6); `base_objects` counts the views too (recipes 3.5)."""
    chunks = [chunk for chunk, codec in enumerate(layout.codecs) if codec > 1]
    need(bool(chunks) == bool(table), "layout", "prefixes are left over or missing")
    layout.prefixes = {}
    if table:
        [counts] = table.planes("I", len(chunks))
        ranges = list(zip(*table.planes("IQQ", sum(counts))))
        need(all(counts), "layout", "a chunk without a prefix")
        good = all(number < base_objects and size and start + size < 1 << 64 for number, start, size in ranges)
        need(good, "layout", "an object that the bases do not have, or a range of no bytes or beyond every object")
        rest = iter(ranges)
        layout.prefixes = {chunk: list(islice(rest, count)) for chunk, count in zip(chunks, counts)}
        for own in layout.prefixes.values():
            need(len({number for number, _, _ in own}) == len(own), "layout", "a prefix has an object twice")
    layout.prefix_lens = {chunk: sum(size for _, _, size in own) for chunk, own in layout.prefixes.items()}

def parse_layout(data, index, piece, base_objects=None):
    """How the file stores the objects (core 7): columns by chunk, and each object's holes, data length and parts."""
    layout, sizes, ids = SimpleNamespace(parts={}, values={}), index.sizes, index.ids
    with sections(data, "layout", "chunks groups pieces holes landmark? prefixes! repository? recipes!") as found:
        recipes = layout.recipes = parse_recipes(found.recipes, sizes, ids, base_objects) if found.recipes else None
        made = recipes.made if recipes else {}
        sizes, ids = ([*sizes, *recipes.sizes], [*ids, *recipes.ids]) if recipes else (sizes, ids)
        count = found.chunks.int("I")
        layout.codecs = found.chunks.take(count)
        layout.stored, layout.lens, counts = found.chunks.planes("III", count)
        layout.digests = [found.chunks.take(32) for _ in range(count)]
        found.chunks.end()
        need(set(layout.codecs) <= {0, 1, 2, 3}, "unsupported", "a chunk of another codec")
        [steps] = found.groups.planes("I", sum(counts))
        count = sum(-(-size // piece) for size in sizes if size > piece)
        [chunks_of], values = found.pieces.planes("I", count), [found.pieces.take(32) for _ in range(count)]
        layout.holes = parse_holes(found.holes, sizes)
        landmark = sum(found.landmark.read("II")) if found.landmark else 0
        need(not made.keys() & layout.holes.keys(), "layout", "an object with holes has a recipe")
        views = len(recipes.views) if recipes else 0
        parse_prefixes(found.prefixes, layout, (base_objects or 0) + views)
        named = {number - (base_objects or 0) for own in layout.prefixes.values() for number, _, _ in own}
        need(not views or named | recipes.used >= set(range(views)), "layout", "a view is not used")
        need(index.ostree or not found.repository, "layout", "the files of a repository, and no commit of it")
        layout.repository = parse_repository(found.repository) if found.repository else []
    for codec, stored, length in zip(layout.codecs, layout.stored, layout.lens):
        need(stored and length and (codec or stored == length), "layout", "the lengths of a chunk")
    need(landmark <= len(layout.lens), "layout", "the landmark is beyond the chunks")

    def data_len(number, start, end):
        return sum(b - a for a, b in spans(layout.holes.get(number, ()), start, end))

    layout.data = [data_len(number, 0, size) for number, size in enumerate(sizes)]
    layout.disk = [block_count(data) for data in layout.data]

    # Whole objects in groups (core 7.2).
    members = list(accumulate(steps, lambda last, step: (last + 1 + step) % 2**32, initial=-1))[1:]
    small = [number for number, size in enumerate(sizes) if size <= piece and layout.data[number] and number not in made]
    need(sorted(members) == small, "layout", "groups do not hold each small object that has data once")
    # The length of each chunk that is a piece, by its number + 1 as pieces name it; 0 names none.
    members, lone = iter(members), {0: 0}
    for chunk, (count, length) in enumerate(zip(counts, layout.lens)):
        at = 0
        for number in islice(members, count):
            layout.parts[number] = [Part(chunk, at, 0, sizes[number])]
            at += layout.data[number]
        if count == 0:
            lone[chunk + 1] = at = length
        need(at == length, "layout", "a group of another length")
    need({0, *chunks_of} == lone.keys(), "layout", "a chunk that nothing names, or a piece in no chunk")

    # Objects in pieces (core 7.3); an object that still has no parts has no data, or a recipe.
    rows, files = zip(chunks_of, values), {number for *_, number in index.files}
    for number, size in enumerate(sizes):
        if size > piece:
            layout.parts[number], own = [], []
            for start, (chunk, value) in zip(range(0, size, piece), rows):
                end = min(start + piece, size)
                is_made = number in made
                need(lone[chunk] == (0 if is_made else data_len(number, start, end)), "layout", "a piece of another length")
                layout.parts[number].append(Part(-2 if is_made else chunk - 1, 0, start, end))
                own.append(value)
            layout.values[number] = own
            need(merge(own) == ids[number], "layout", "chaining values of another object")
            chunks = [part.chunk for part in layout.parts[number] if part.chunk >= 0]
            good = number not in files or chunks == sorted(chunks)
            need(good, "layout", "chunks of an OSTree file's pieces descend")
        layout.parts.setdefault(number, [Part(-2 if number in made else -1, 0, 0, size)])
    return layout

def block_count(size):
    return -(-size // 4096)

def xattrs_disk(row):
    """The blocks that the extended attributes of an inode take (core 4.4)."""
    return block_count(max(0, sum(len(name) + len(value) for name, value in row.xattrs) - 64))

class Bundle:
    """A bundle whose head, layout and index are good (core 2); `policy` says who is trusted, if it is to be judged."""

    def __init__(self, file, policy):
        self.file, self.size = file, file.seek(0, io.SEEK_END)
        file.seek(0)

        # The head (core 3 to 5), and whether it is trusted (trust).
        need(MAGIC.startswith(file.read(8)), "header", "not a Sealift bundle")
        file.seek(0)
        signed = self.read(32)
        signed += self.read(parse_preamble(signed))
        area = self.read(4)
        area_len = int.from_bytes(area, "little")
        need(64 <= area_len <= 1 << 20, "header", "area_len is out of its range")
        area += self.read(area_len - 4)
        self.root = root = parse_root(signed[32:])
        self.envelopes = parse_area(area, signed)
        for field, limit in LIMITS.items():
            need(vars(root)[field] <= limit, "limit", field)
        chunks = len(signed) + area_len + root.layout_stored + root.index_stored
        need(chunks + root.chunks_stored < 1 << 64, "limit", "the file's length")
        if root.recipes:
            check_limits(root.recipes)
        keys = check_signatures(signed, self.envelopes)
        if policy:
            judge(root, signed, keys, policy)

        # The order of core 11.2: the index is compared with its maxima before the layout is parsed.
        layout, plain = self.decode_part("layout"), self.decode_part("index")
        self.contents, self.plain = [], {}
        if root.bases:
            self.difference = own = parse_difference(plain, root.entries, root.index_len)
            self.agree(refs=len(own.refs))
            self.layout = parse_layout(layout, own, 1 << root.piece_log2, own.base_objects)
            self.agree_layout()
            self.agree(prefix_len=max(self.layout.prefix_lens.values(), default=0))
            self.take_recipes(own)
        else:
            self.difference = None
            self.open_index(plain)
            self.layout = parse_layout(layout, self.index, 1 << root.piece_log2)
            self.agree_disk()
            self.agree_layout()
            self.take_recipes(self.index)
        *self.starts, end = accumulate(self.layout.stored, initial=chunks)
        need(self.size >= end, "truncated", "the file ends within its chunks")
        need(self.size == end, "trailing", "bytes after the last chunk")

    def take_recipes(self, own):
        """Compare what the root says of recipes, and count the leaves among the objects (recipes 2 and 3.1)."""
        recipes = self.layout.recipes
        self.ids, self.to = [*own.ids, *(recipes.ids if recipes else ())], None
        found = sums_of(recipes, [*own.sizes, *recipes.sizes]) if recipes else None
        need(found == self.root.recipes, "header", "the root says something else of the recipes")

    def open_index(self, plain):
        """The index, compared with its digest and its maxima."""
        root = self.root
        need(len(plain) == root.index_len, "index", "the index has another length")
        need(verity(plain) == root.index_digest, "index", "index_digest does not agree")
        self.index = index = parse_index(plain, root.entries)
        depth, paths, lens = max(depth for _, depth, *_ in index.order), 0, {}
        for _, _, directory, name, inode in index.order:  # the entry of a directory is before those in it
            own = len(name) if directory is None else lens[directory] + len(name)
            paths, lens[inode] = paths + own, own + (directory is not None)
        entries, inodes, used = len(index.names), len(index.inodes), list(index.object.values())
        if index.ostree:
            objects, files, more = index.ostree.of_parents()
            index.of_parents = [index.ostree.objects[number][1] for number in objects], [index.ostree_files[number] for number in files]
            depth, entries, inodes = max(depth, index.ostree.depth()), entries + more, inodes + len(objects) + len(files)
            used += [content for _, row, content in index.of_parents[1] if row.mode >> 12 == 8]
        self.agree(refs=len(index.refs), depth=depth, entries=entries, paths=paths, inodes=inodes, objects=len(index.ids),
                   logical=sum(index.sizes[number] for number in used))

    def agree_disk(self):
        """The space of the inodes on a disk (core 4.4); in a delta bundle, of the files whose content it carries (delta 4)."""
        index, layout = self.index, self.layout
        names = defaultdict(int)
        for _, _, directory, name, _ in index.order:
            names[directory] += 16 + len(name)
        own = {inode: layout.disk[number] for inode, number in index.object.items() if number in layout.parts}
        if not self.root.bases:
            own |= {inode: len(target) > 59 for inode, target in index.target.items()}
            own |= {inode: 1 + names[inode] // 4096 for inode, kind in enumerate(index.types) if kind == "dir"}
            own = {inode: own.get(inode, 0) for inode in range(len(index.inodes))}
        disk = sum(own.values()) + sum(xattrs_disk(index.inodes[inode]) for inode in own)
        objects, files = index.of_parents if index.ostree else ((), ())
        for _, row, content in files:
            is_regular = row.mode >> 12 == 8
            if content in layout.parts if is_regular else not self.root.bases:
                disk += (layout.disk[content] if is_regular else len(content) > 59) + xattrs_disk(row)
        self.agree(disk=4096 * (disk + (0 if self.root.bases else sum(block_count(len(data)) for data in objects))))

    def agree_layout(self):
        layout = self.layout
        self.agree(chunks=len(layout.lens), chunks_stored=sum(layout.stored),
                   chunk_len=max(layout.lens, default=0), chunk_stored=max(layout.stored, default=0))

    def complete(self, bases):
        """Make the wanted index and give the carried objects their numbers in it (delta 9.2). `bases` are whole bundles."""
        root, own, layout = self.root, self.difference, self.layout
        given = [(base.root.index_digest, base.root.index_len) for base in bases]
        need(given == [base[2:] for base in root.bases], "base", "these are not the bases")
        self.contents = [b"".join(base.content(number)) for base in bases for number in range(len(base.index.ids))]
        recipes, lens = layout.recipes, dict(enumerate(map(len, self.contents)))
        for number, end in of_bases(recipes) if recipes else ():
            need(end <= lens.get(number, 0), "layout", "a range passes the end of its object")
        if recipes:
            lens |= {own.base_objects + view: segments[-1].end for view, segments in enumerate(recipes.views)}
        for number, start, size in (part for ranges in layout.prefixes.values() for part in ranges):
            need(start + size <= lens.get(number, 0), "layout", "a prefix passes the end of its object")
        self.open_index(apply_difference(own, [base.index for base in bases]))
        ids = {id_: number for number, id_ in enumerate(self.index.ids)}
        numbers = [ids[id_] for id_ in own.ids]
        numbers += range(len(ids), len(ids) + (recipes.count if recipes else 0))
        self.to, self.ids = numbers, [*self.index.ids, *self.ids[len(own.ids):]]
        layout.parts = {numbers[number]: parts for number, parts in layout.parts.items()}
        layout.holes = {numbers[number]: holes for number, holes in layout.holes.items()}
        layout.values = {numbers[number]: values for number, values in layout.values.items()}
        for column in "data", "disk":
            own = dict(zip(numbers, getattr(layout, column)))
            setattr(layout, column, [own.get(number, 0) for number in range(len(ids))])
        self.agree_disk()

    def read(self, count):
        need(count <= self.size - self.file.tell(), "truncated", "the file ends within its first parts")
        return self.file.read(count)

    def checked(self, count, digest, kind):
        stored = self.read(count)
        need(blake3(stored).digest() == digest, kind, "the BLAKE3 of the stored bytes does not agree")
        return stored

    def decode_part(self, kind):
        """The layout, or the index or what replaces it (core 4.2)."""
        stored, size, digest = (vars(self.root)[f"{kind}_{field}"] for field in ("stored", "len", "blake3"))
        if kind == "index" and self.root.bases:
            size = self.root.difference_len
        return unzstd(self.checked(stored, digest, kind), size, self.root.window_log, kind)

    def agree(self, **found):
        """Check that the root's maxima are exact (core 4.3)."""
        need(max(found.values()) < 1 << 64, "limit", "a sum passes 2^64-1")
        for field, value in found.items():
            need(value == vars(self.root)[field], "header", f"{field} is {value}, the root says otherwise")

    def stored(self, chunk):
        """A chunk's stored bytes, compared with its digest (core 7.2)."""
        self.file.seek(self.starts[chunk])
        return self.checked(self.layout.stored[chunk], self.layout.digests[chunk], "chunk")

    @lru_cache(1)
    def decode(self, chunk):
        stored, length, codec = self.stored(chunk), self.layout.lens[chunk], self.layout.codecs[chunk]
        ranges, window = self.layout.prefixes.get(chunk, ()), self.root.window_log
        prefix = b"".join(self.of_base(number, start, start + size) for number, start, size in ranges)
        if codec == 3:
            return unsuffix(stored, length, window, prefix)
        return unzstd(stored, length, window, "chunk", prefix) if codec else stored

    def of_base(self, number, start, end):
        """The bytes of a base object or, beyond these, of a view (recipes 3.5)."""
        if number < len(self.contents):
            return self.contents[number][start:end]
        recipes = self.layout.recipes
        return make(recipes, recipes.views[number - len(self.contents)], start, end, self.of_range)

    def of_range(self, of, start, end):
        """The bytes of a range of a recipe or view, all of whose portions are compared with their ids (recipes 3.3 and 4.1)."""
        leaves = self.layout.recipes.first + self.layout.recipes.count
        if of >= leaves:
            return self.of_base(of - leaves, start, end)
        number, plain = self.to[of] if self.to else of, b""
        for piece, part in enumerate(self.layout.parts[number]):
            if start < part.end and part.start < end:
                if (number, piece) not in self.plain:
                    self.plain[number, piece] = self.check_part(number, piece, part)
                plain += self.plain[number, piece][max(0, start - part.start):end - part.start]
        return plain

    def held(self):
        """By chunk the (object, piece, part) that it holds; -1 has the parts that are in no chunk, and -2 those that are made."""
        held = defaultdict(list)
        for number, parts in self.layout.parts.items():
            for piece, part in enumerate(parts):
                held[part.chunk].append((number, piece, part))
        return held

    def check_part(self, number, piece, part):
        values, plain = self.layout.values.get(number), bytes(self.part(number, part))
        found = chaining_value(plain, part.start) if values else blake3(plain).digest()
        need(found == (values[piece] if values else self.ids[number]), "object", f"object {number} is not what its id says")
        return plain

    def check_shapes(self):
        """Check the content of a delta bundle without its bases, chunk after chunk (delta 9.1)."""
        held, layout, window = self.held(), self.layout, self.root.window_log
        for chunk, (codec, length) in enumerate(zip(layout.codecs, layout.lens)):
            if codec == 3:
                parse_suffix(self.stored(chunk), length, layout.prefix_lens[chunk], window)
            elif codec == 2:
                check_prefixed(self.stored(chunk), length, window, "chunk")
            else:
                for part in held[chunk]:
                    self.check_part(*part)
        for part in held[-1]:
            self.check_part(*part)

    def part(self, number, part):
        """A part's bytes, with the holes as zeros."""
        chunk, at, start, end = part
        if chunk == -2:
            recipes = self.layout.recipes
            own = next(own for own in recipes.made if (self.to[own] if self.to else own) == number)
            return make(recipes, recipes.made[own], start, end, self.of_range)
        data, plain = self.decode(chunk) if chunk >= 0 else b"", bytearray(end - start)
        for a, b in spans(self.layout.holes.get(number, ()), start, end):
            plain[a - start:b - start] = data[at:at + b - a]
            at += b - a
        return plain

    def content(self, number):
        """The bytes of an object part by part."""
        return (self.part(number, part) for part in self.layout.parts[number])

    def check_chunks(self):
        for chunk in range(len(self.starts)):
            self.stored(chunk)

    def check_objects(self):
        """Check all content, chunk after chunk (core 8); gives the SHA-256 of each object."""
        verities, sha256s, files, held = {}, {}, defaultdict(list), self.held()
        for checksum, header, number in self.index.files:
            files[number].append((checksum, header))

        def check_object(number, content):
            id_, sha256, level = blake3(), hashlib.sha256(), bytearray()
            whole = [(checksum, hashlib.sha256(header)) for checksum, header in files[number]]
            for plain in content:
                id_.update(plain)
                for _, file in whole:
                    file.update(plain)
                sha256.update(plain)
                level += blocks(plain)
            need(id_.digest() == self.ids[number], "object", f"object {number} is not what its id says")
            good = all(file.digest() == checksum for checksum, file in whole)
            need(good, "object", "an OSTree file is not what its checksum says")
            if number < len(self.index.ids):  # there is no digest of a leaf
                verities[number] = verity_of_blocks(self.index.sizes[number], level)
            sha256s[number] = sha256.hexdigest()

        for chunk in [*range(len(self.starts)), -1]:
            try:
                if chunk >= 0:
                    self.decode(chunk)
            except Reject:
                # A piece of an earlier chunk comes first. Otherwise pieces are hashed with their object, which is much faster here.
                for part in (part for before in range(chunk) for part in held[before]):
                    self.check_part(*part)
                raise
            for number, _, _ in held[chunk]:
                if number not in self.layout.values:
                    check_object(number, self.content(number))
        # Of the leaves that are made, only what the others use is checked (recipes 4.1).
        is_made = {number: parts[0].chunk == -2 for number, parts in self.layout.parts.items()}
        later = [number for number, made in is_made.items() if made and number < len(self.index.ids)]
        for number in [number for number in self.layout.values if not is_made[number]] + later:
            check_object(number, self.content(number))
        # The objects that a delta bundle does not carry (delta 9.2).
        numbers = {id_: number for number, id_ in enumerate(self.index.ids)}
        for plain in self.contents:
            number = numbers.get(blake3(plain).digest())
            if number is not None:
                check_object(number, [plain])
        table = b"".join(verities[number] for number in range(len(self.index.ids)))
        need(verity(table) == self.index.verity, "index", "verity(T) does not agree")
        return sha256s

    def listing(self, sha256s=None):
        """One line with a JSON object for each entry; `sha256s` are those of the objects."""
        for row in entries(self.index):
            if sha256s and row["type"] == "file":
                row["sha256"] = sha256s[self.index.object[row["inode"]]]
            yield compact(row) + "\n"

def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("list", "verify"))
    parser.add_argument("bundle")
    parser.add_argument("--content", action="store_true", help="list: check it and add each file's SHA-256")
    parser.add_argument("--deep", action="store_true", help="verify: check the content too")
    parser.add_argument("--base", action="append", default=[], help="a base of a delta bundle, in the order of its root")
    for key in POLICY:
        parser.add_argument("--" + key, dest=key, action="append", help="as in a vector, or its file")
    arguments = parser.parse_args()
    policy = {key: vars(arguments)[key] for key in POLICY if vars(arguments)[key]}
    for key in policy.keys() & {"trust", "revoked"}:
        files = [open(path, encoding="latin-1", newline="").read() for path in policy[key]]
        policy[key] = "\n".join(files).split("\n")
    try:
        bundle, sha256s = Bundle(open(arguments.bundle, "rb"), policy), None
        if bundle.difference and arguments.command == "list" and not arguments.base:
            parser.error("a delta bundle is listed with its bases")
        if arguments.base:
            bundle.complete([Bundle(open(path, "rb"), {}) for path in arguments.base])
        if bundle.difference and not arguments.base:
            bundle.check_shapes()
        elif arguments.content or arguments.deep:
            sha256s = bundle.check_objects()
        elif arguments.command == "verify":
            bundle.check_chunks()
        sys.stdout.writelines(bundle.listing(sha256s) if arguments.command == "list" else ["ok\n"])
    except Reject as reject:
        print(*reject.args, sep=": ")
        return 1

if __name__ == "__main__":
    sys.exit(main())
