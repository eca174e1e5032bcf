"""The index: what a bundle installs (core 6)."""
import re, struct
from collections import namedtuple
from itertools import accumulate, islice
from types import SimpleNamespace

from encoding import ascends, need, sections
from ostree import OSTree, parse_targets

REF = re.compile(rb"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
COMPONENT = re.compile(rb"(?!\.\.?\Z)[^/\0]+")
TYPES = {8: "file", 4: "dir", 10: "symlink", 2: "char", 6: "block", 1: "fifo", 12: "socket"}
Attributes = namedtuple("Attributes", "mode uid gid xattrs")

SECTIONS = "refs entries inodes directories regulars symlinks devices attributes objects verity ostree!"

def parse_index(data, entries):
    """The content to install: columns, and by inode the fields specific to a directory, file, link or device (core 6.3)."""
    index = SimpleNamespace()
    with sections(data, "index", SECTIONS) as found:
        kinds = index.kinds = dict(parse_refs(found.refs))
        index.refs = list(kinds)
        trees, commits = ([ref for ref in index.refs if kinds[ref] == kind] for kind in (0, 1))
        need(bool(commits) == bool(found.ostree), "index", "OSTree's section is left over or missing")

        index.sizes, index.ids = parse_objects(found.objects)
        index.verity = found.verity.take(32)
        attributes = parse_attributes(found.attributes)
        rows, index.mtime, index.mtime_ns = map(list, found.inodes.planes("IqI", found.inodes.int("Q")))
        ostree = OSTree(found.ostree, attributes, len(commits), Attributes) if commits else None
        first_used = list(dict.fromkeys([*rows, *(ostree.rows if ostree else ())]))
        need(first_used == list(range(len(attributes))), "index", "attribute rows are out of order")
        need(max(index.mtime_ns, default=0) < 10**9, "index", "nanoseconds")
        index.inodes = [attributes[row] for row in rows]
        index.types = [TYPES[row.mode >> 12] for row in index.inodes]
        files = parse_types(index, found, ostree.column if ostree else ())

        count = found.entries.int("Q")
        lengths, [index.links] = found.entries.take(count), found.entries.planes("I", count)
        index.names = [found.entries.take(length) for length in lengths]
    index.order, index.files, index.ostree = list(tree_order(index, trees)), [], ostree
    need(all(map(COMPONENT.fullmatch, index.names)), "path", "a name that an entry must not have")
    if ostree:
        regulars, links = iter(files), iter(ostree.targets)
        contents = [next(regulars if kind == 8 else links) for kind in ostree.kinds]
        index.ostree_files = [(sum_, attributes[row], content) for sum_, row, content in zip(ostree.files, ostree.rows, contents)]
        index.files = ostree.regular_files(attributes, files)
        index.order += commit_order(index, ostree, commits, [attributes[row] for row in ostree.rows], files, entries)
        index.order.sort(key=lambda line: line[0])
    return index

def parse_refs(table):
    """The names and kinds of the trees (core 6.1)."""
    last, count = b"", table.int("H")
    need(count, "index", "no refs")
    for _ in range(count):
        kind = table.int("B")
        need(kind in (0, 1), "unsupported", "a ref that is neither a tree nor a commit")
        name = table.string("B")
        need(REF.fullmatch(name) and last < name, "index", "the form of a ref's name, or they do not ascend")
        last = name
        yield name, kind

def write_index(refs, names, links, inodes, attributes, objects, verity, ostree):
    """The bytes of an index (core 6). An inode has an attribute row, a time, and fields by its type."""
    def column(code, values):
        rows = [struct.pack("<" + code, value) for value in values]
        return b"".join(bytes(plane) for plane in zip(*rows))

    def of(*types):
        return [own for row, _, own in inodes if TYPES[attributes[row].mode >> 12] in types]

    def row(own):
        xattrs = (bytes([len(name)]) + name + struct.pack("<I", len(value)) + value for name, value in own.xattrs)
        return struct.pack("<HIIH", own.mode, own.uid, own.gid, len(own.xattrs)) + b"".join(xattrs)

    count, devices, targets = struct.pack("<Q", len(inodes)), of("char", "block"), of("symlink")
    payloads = [
        struct.pack("<H", len(refs)) + b"".join(bytes([kind, len(name)]) + name for kind, name in refs),
        struct.pack("<Q", len(names)) + bytes(map(len, names)) + column("I", links) + b"".join(names),
        count + column("I", [row for row, _, _ in inodes]) + column("q", [time for _, (time, _), _ in inodes])
        + column("I", [ns for _, (_, ns), _ in inodes]),
        column("I", of("dir")),
        column("I", of("file")),
        column("H", map(len, targets)) + b"".join(targets),
        column("I", [major for major, _ in devices]) + column("I", [minor for _, minor in devices]),
        struct.pack("<I", len(attributes)) + b"".join(map(row, attributes)),
        struct.pack("<Q", len(objects)) + column("Q", [size for size, _ in objects]) + b"".join(id_ for _, id_ in objects),
        verity,
    ]
    if ostree:
        metas, files, regulars, links, commits, collections = ostree
        payloads.append(
            struct.pack("<I", len(metas)) + bytes(kind for kind, _ in metas) + column("I", [len(data) for _, data in metas])
            + b"".join(data for _, data in metas) + struct.pack("<I", len(files)) + column("I", files) + column("I", regulars)
            + column("H", map(len, links)) + b"".join(links) + column("I", commits)
            + b"".join(bytes([len(name)]) + name for name in collections))
    parts = (struct.pack("<HHQ", number, 1, len(payload)) + payload for number, payload in enumerate(payloads, 1))
    return b"".join(parts)

def parse_objects(table):
    """Sizes and ids (core 6.5)."""
    count = table.int("Q")
    [sizes], ids = table.planes("Q", count), [table.take(32) for _ in range(count)]
    table.end()
    need(max(sizes, default=0) < 1 << 63, "limit", "an object of more than 2^63-1 bytes")
    need(len(set(ids)) == count, "index", "an object id stands twice")
    return sizes, ids

def parse_attributes(table):
    """The attribute rows (core 6.4), which must be distinct."""
    rows = list(attribute_rows(table))
    need(len(set(rows)) == len(rows), "index", "an attribute row stands twice")
    return rows

def attribute_rows(table):
    for _ in range(table.int("I")):
        mode, uid, gid, count = table.read("HIIH")
        xattrs = tuple((table.string("B"), table.string("I")) for _ in range(count))
        need(mode >> 12 in TYPES and 2**32 - 1 not in (uid, gid), "index", "a mode or an owner that is none")
        for name, value in xattrs:
            need(name and 0 not in name and len(value) <= 65536, "index", "the form of an extended attribute")
        need(ascends([name for name, _ in xattrs]), "index", "extended attributes do not ascend")
        yield Attributes(mode, uid, gid, xattrs)

def parse_types(index, found, more):
    """By inode, the fields specific to its type (core 6.3). Returns the objects of OSTree files, whose column is `more`."""
    def inodes(*types):
        return [inode for inode, kind in enumerate(index.types) if kind in types]

    dirs, files, links, devices = inodes("dir"), inodes("file"), inodes("symlink"), inodes("char", "block")
    index.children = dict(zip(dirs, *found.directories.planes("I", len(dirs))))
    index.device = dict(zip(devices, zip(*found.devices.planes("II", len(devices)))))

    index.target = dict(zip(links, parse_targets(found.symlinks, len(links))))
    [column] = found.regulars.planes("I", len(files))
    column = [*column, *more]
    # For each file, and for the end, the number of preceding objects.
    come = list(accumulate((not value for value in column), initial=0))
    good = come[-1] == len(index.ids) and all(value <= before for value, before in zip(column, come))
    need(good, "index", "objects are used before they have come, are left over or missing")
    numbers = [value - 1 if value else before for value, before in zip(column, come)]
    index.object = dict(zip(files, numbers))
    return numbers[len(files):]

def commit_order(index, ostree, refs, rows, objects, entries):
    """Build the trees that the dirtrees describe (ostree 6), after the existing ones."""
    regulars, links = iter(objects), iter(ostree.targets)
    contents = [next(regulars if row.mode >> 12 == 8 else links) for row in rows]

    def add(row):
        for column, value in (index.inodes, row), (index.types, TYPES[row.mode >> 12]), (index.mtime, 0), (index.mtime_ns, 0):
            column.append(value)
        return len(index.inodes) - 1

    for ref, commit in zip(refs, ostree.commits):
        dirtree, meta = ostree.roots[commit]
        root = add(ostree.metas[meta])
        yield ref, 0, None, b"", root
        waiting = [(root, dirtree, 1)]
        while waiting:
            directory, dirtree, depth = waiting.pop()
            below = []
            for entry in ostree.trees[dirtree]:
                need(len(index.names) < entries, "header", "a tree has more entries than the root says")
                index.names.append(entry.name)
                inode = add(ostree.metas[entry.meta] if entry.file is None else rows[entry.file])
                if entry.file is None:
                    below.append((inode, entry.dirtree, depth + 1))
                else:
                    kind = index.object if index.types[inode] == "file" else index.target
                    kind[inode] = contents[entry.file]
                yield ref, depth, directory, entry.name, inode
            waiting += reversed(below)

def tree_order(index, refs):
    """Build the trees (core 6.1): for each root and entry (ref, depth, the directory's inode, name, inode)."""
    types, inode, entries = index.types, 0, zip(index.names, index.links)
    for ref in refs:
        first, inode = inode, inode + 1
        need(first < len(types) and types[first] == "dir", "index", "a ref's root is not a directory")
        yield ref, 0, None, b"", first
        waiting = [(first, 1)]  # the directories whose blocks are still missing, the next one last
        while waiting:
            directory, depth = waiting.pop()
            block, below = list(islice(entries, index.children[directory])), []
            good = len(block) == index.children[directory] and ascends([name for name, _ in block])
            need(good, "index", "entries are missing, or the names of a directory do not ascend")
            for name, link in block:
                number, inode = (link - 1, inode) if link else (inode, inode + 1)
                need(first <= number < inode <= len(types), "index", "a link to no earlier inode, or too few")
                if types[number] == "dir":
                    need(not link, "index", "a link to a directory")
                    below.append((number, depth + 1))
                yield ref, depth, directory, name, number
            waiting += reversed(below)
    need(not any(entries) and inode == len(types), "index", "entries or inodes are left over")
