"""OSTree commits in an index: their objects, and the trees that they describe (ostree)."""
import hashlib
import re
import struct
from types import SimpleNamespace

import gvariant
from encoding import ascends, need

TYPES = {2: "dirtree", 3: "dirmeta", 4: "commit", 6: "commitmeta"}
COLLECTION = re.compile(rb"([A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+)?")
# The header of a file object, and the same for a directory without the target; numbers stay in OSTree's byte order.
HEADER, META, DIRTREE = "(uuuusa(ayay))", "(uuua(ayay))", "(a(say)a(sayay))"

def swap(number):
    return int.from_bytes(number.to_bytes(4, "little"), "big")

def xattrs_of(items):
    rows = tuple((bytes(name), bytes(value)) for name, value in items)
    good = all(name[-1:] == b"\0" and name[:-1] and 0 not in name[:-1] and len(name) < 257 for name, _ in rows)
    need(good and all(len(value) <= 65536 for _, value in rows), "index", "the form of an extended attribute")
    rows = tuple((name[:-1], value) for name, value in rows)
    need(ascends([name for name, _ in rows]), "index", "extended attributes do not ascend")
    return rows

def header(row, target=b""):
    xattrs = [[list(name + b"\0"), list(value)] for name, value in row.xattrs]
    values = [swap(row.uid), swap(row.gid), swap(row.mode), 0, target.decode(), xattrs]
    variant = gvariant.write(HEADER, values)
    return struct.pack(">II", len(variant), 0) + variant

def parse_targets(table, count):
    """The targets of symbolic links (core 6.3)."""
    [lengths] = table.planes("H", count)
    targets = [table.take(length) for length in lengths]
    for target in targets:
        need(0 < len(target) < 4096 and 0 not in target, "index", "the form of a symbolic link's target")
    return targets

def parse_commit(data):
    """Return the checksums of the parent and of the root's dirtree and dirmeta."""
    values = gvariant.parse("(a{sv}aya(say)sstayay)", data)
    for key, (kind, _) in values[0]:
        bound = {"ostree.ref-binding": "as", "ostree.collection-binding": "s"}.get(key, kind)
        need(kind == bound, "index", "the type of what binds a commit")
    parent, root, meta = bytes(values[1]), bytes(values[6]), bytes(values[7])
    need(len(parent) in (0, 32) and len(root) == len(meta) == 32, "index", "the checksums in a commit")
    return parent, root, meta

def parse_dirmeta(data, make_row):
    uid, gid, mode, xattrs = gvariant.parse(META, data)
    mode = swap(mode)
    need(mode >> 12 == 4, "index", "a dirmeta that is not a directory's")
    need(2**32 - 1 not in (uid, gid), "index", "an owner that is none")
    return make_row(mode, swap(uid), swap(gid), xattrs_of(xattrs))

def parse_dirtree(data):
    """Return its files and directories: lists of the name and the checksums of each."""
    files, dirs = gvariant.parse(DIRTREE, data)
    names = [[name.encode() for name, *_ in part] for part in (files, dirs)]
    for name in names[0] + names[1]:
        good = name not in (b"", b".", b"..") and b"/" not in name and len(name) < 256
        need(good, "index", "a name that a dirtree must not have")
    good = all(map(ascends, names)) and not set(names[0]) & set(names[1])
    need(good, "index", "the names of a dirtree do not ascend or stand twice")
    good = all(len(sum_) == 32 for _, *sums in files + dirs for sum_ in sums)
    need(good, "index", "the checksums in a dirtree")
    return files, dirs

def parse_collection(table):
    name = table.string("B")
    need(COLLECTION.fullmatch(name), "index", "the form of a collection id")
    return name

def parse_repository(table):
    """Kinds and bytes of the repository's files (ostree 2.1)."""
    files = [(table.int("B"), table.string("I")) for _ in range(table.int("B"))]
    kinds = [kind for kind, _ in files]
    need(kinds and ascends(kinds) and set(kinds) <= {1, 2, 3, 4}, "layout", "the repository's files")
    return files

class OSTree:
    """Section 11, walked from the commits in its order."""

    def __init__(self, table, attributes, refs, make_row):
        self.make_row = make_row
        count = table.int("I")
        kinds, [lens] = table.take(count), table.planes("I", count)
        need(all(kind in TYPES for kind in kinds), "index", "an OSTree object of another type")
        self.objects = [(TYPES[kind], table.take(length)) for kind, length in zip(kinds, lens)]

        [self.rows] = table.planes("I", table.int("I"))
        good = all(row < len(attributes) and attributes[row].mode >> 12 in (8, 10) for row in self.rows)
        need(good, "index", "an OSTree file that is neither a file nor a link")
        self.kinds = [attributes[row].mode >> 12 for row in self.rows]
        [self.column] = table.planes("I", self.kinds.count(8))
        self.targets = parse_targets(table, self.kinds.count(10))
        [commits] = table.planes("I", refs)
        self.collections = [parse_collection(table) for _ in range(refs)]

        self.next, self.known, self.files, self.trees, self.metas, self.roots = 0, {}, {}, {}, {}, {}
        self.commits = []
        for column in commits:
            need(not column or column - 1 in self.roots, "index", "a ref names no commit that came before")
            self.commits.append(column - 1 if column else self.next_commit())
        need(self.next == len(self.objects), "index", "OSTree objects are left")
        need(len(self.files) == len(self.rows), "index", "OSTree files are missing or left")
        links = iter(self.targets)
        for checksum, kind, row in zip(self.files, self.kinds, self.rows):
            if kind == 10:
                try:
                    good = hashlib.sha256(header(attributes[row], next(links))).digest() == checksum
                except UnicodeDecodeError:
                    good = False
                need(good, "index", "an OSTree link is not what its checksum says")

    def regular_files(self, attributes, objects):
        """Return checksum, header and object of each regular file; `objects` are those of the column."""
        regular = [at for at, kind in enumerate(self.kinds) if kind == 8]
        checksums = list(self.files)
        return [(checksums[at], header(attributes[self.rows[at]]), number) for at, number in zip(regular, objects)]

    def take_next(self, kind, checksum=None):
        """Return the number of the next object if it is this one and new, else None."""
        if self.next == len(self.objects) or self.objects[self.next][0] != kind:
            return None
        own = hashlib.sha256(self.objects[self.next][1]).digest()
        if kind != "commitmeta":
            if checksum not in (None, own) or (kind, own) in self.known:
                return None
            self.known[kind, own] = self.next
        self.next += 1
        return self.next - 1

    def take(self, kind, checksum):
        number = self.known.get((kind, checksum))
        if number is not None:
            return number, False
        number = self.take_next(kind, checksum)
        need(number is not None, "index", f"a {kind} is missing, stands twice or in another place")
        return number, True

    def next_commit(self):
        number = first = self.take_next("commit")
        need(first is not None, "index", "a ref's commit is missing or stands twice")
        while number is not None:
            parent, root, meta = parse_commit(self.objects[number][1])
            if (beside := self.take_next("commitmeta")) is not None:
                gvariant.parse("a{sv}", self.objects[beside][1])
            meta = self.dirmeta(meta)
            self.roots[number] = self.dirtree(root), meta
            number = self.take_next("commit", parent) if parent else None
        return first

    def dirmeta(self, checksum):
        number, new = self.take("dirmeta", checksum)
        if new:
            self.metas[number] = parse_dirmeta(self.objects[number][1], self.make_row)
        return number

    def dirtree(self, checksum):
        root, new = self.take("dirtree", checksum)
        waiting = [self.enter(root)] if new else []
        while waiting:
            entry = next(waiting[-1], None)
            if entry is None:
                waiting.pop()
                continue
            entry.dirtree, new = self.take("dirtree", entry.checksum)
            if new:
                waiting.append(self.enter(entry.dirtree))
        return root

    def enter(self, number):
        """Visit a new dirtree: number its files and visit its dirmetas; return its directories."""
        files, dirs = parse_dirtree(self.objects[number][1])
        names = [[name.encode() for name, *_ in part] for part in (files, dirs)]
        tree = self.trees[number] = []
        for name, (_, checksum) in zip(names[0], files):
            file = self.files.setdefault(bytes(checksum), len(self.files))
            tree.append(SimpleNamespace(name=name, file=file))
        for name, (_, checksum, meta) in zip(names[1], dirs):
            meta = self.dirmeta(bytes(meta))
            tree.append(SimpleNamespace(name=name, file=None, meta=meta, checksum=bytes(checksum)))
        below = [entry for entry in tree if entry.file is None]
        tree.sort(key=lambda entry: entry.name)
        return iter(below)

    def of_parents(self):
        """What belongs to no ref (ostree 6.1): the numbers of its metadata objects and of its files, and how many entries it adds."""
        own, files = set(), set()
        for commit in self.commits:
            tree, meta = self.roots[commit]
            own |= {commit, meta}
            if commit + 1 < len(self.objects) and self.objects[commit + 1][0] == "commitmeta":
                own.add(commit + 1)
            waiting = [tree]
            while waiting:
                tree = waiting.pop()
                if tree not in own:
                    own.add(tree)
                    files |= {entry.file for entry in self.trees[tree] if entry.file is not None}
                    below = [entry for entry in self.trees[tree] if entry.file is None]
                    own |= {entry.meta for entry in below}
                    waiting += [entry.dirtree for entry in below]
        objects = [number for number in range(len(self.objects)) if number not in own]
        entries = sum(1 if number in self.roots else len(self.trees.get(number, ())) for number in objects)
        return objects, [number for number in range(len(self.rows)) if number not in files], entries

    def depth(self):
        """The components of the longest path in the trees of all commits, each dirtree after those in it."""
        depths, waiting = {}, [tree for tree, _ in self.roots.values()]
        while waiting:
            entries = self.trees[waiting[-1]]
            missing = [entry.dirtree for entry in entries if entry.file is None and entry.dirtree not in depths]
            if not missing:
                below = [depths[entry.dirtree] for entry in entries if entry.file is None]
                depths[waiting.pop()] = max(below, default=0) + 1 if entries else 0
            waiting += missing
        return max(depths[tree] for tree, _ in self.roots.values())
