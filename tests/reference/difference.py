"""The difference that replaces the index in a delta bundle (delta 5), read without a base."""
from itertools import accumulate
from types import SimpleNamespace

import gvariant
from encoding import ascends, check_prefixed, need, sections
from index import COMPONENT, REF, TYPES, Attributes, parse_attributes, parse_objects
from ostree import parse_collection, parse_commit, parse_dirmeta, parse_targets

NAMES = ("base refs edits changes directories regulars symlinks devices links times attributes objects verity "
         "ostree!")
GONE, NEW, LINK = 2, (3, 4), (5, 6)

def parse_difference(data, entries, index_len):
    """Refs, edits and tables. The carried objects are in `sizes` and `ids`; the layout places them."""
    own = SimpleNamespace()
    with sections(data, "index", NAMES) as found:
        own.base_objects = found.base.int("I")
        own.base_refs = parse_refs(found.base)
        own.refs = parse_refs(found.refs, own.base_refs)
        own.sizes, own.ids = parse_objects(found.objects)
        own.edits = parse_names(found.edits)
        own.attributes, own.verity = parse_attributes(found.attributes), found.verity.take(32)
        own.times = parse_times(found.times)
        commits = sum(kind for kind, _, _ in own.refs)
        need(bool(commits) == bool(found.ostree), "index", "OSTree's section is left over or missing")

        rows = parse_changes(found.changes, own.edits, own.attributes)
        columns = parse_columns(found, own)
        own.ostree = parse_ostree(found.ostree, own, commits, index_len) if commits else None
        rows += own.ostree.rows if commits else []
        need(list(dict.fromkeys(rows)) == list(range(len(own.attributes))), "index", "attributes are out of order or left")
        columns += own.ostree.objects if commits else []
        need(set(range(len(own.ids))) <= set(columns), "index", "an object is carried that no file has")
    own.files = [(None, None, number) for number in own.ostree.objects if number < len(own.ids)] if commits else []
    own.roots = list(lay_down(own))
    check_links(own)
    below = (edit.name for edit in own.edits if edit.parent is not None)
    need(all(map(COMPONENT.fullmatch, below)), "path", "a name that an entry must not have")
    stay = sum(edit.parent is not None and edit.op != GONE for edit in own.edits)
    need(stay <= entries, "header", "the edits make more entries than the root says")
    return own

def parse_refs(table, base=None):
    """Kinds and names; for wanted refs also the ref of `base` that they are relative to, or none."""
    refs, taken, last = [], {0}, b""
    for _ in range(table.int("H")):
        kind = table.int("B")
        need(kind in (0, 1), "unsupported", "a ref that is neither a tree nor a commit")
        name = table.string("B")
        need(REF.fullmatch(name) and last < name, "index", "the form of a ref's name, or they do not ascend")
        last = name
        if base is None:
            refs.append((kind, name))
            continue
        number = table.int("H")
        good = not number or number <= len(base) and base[number - 1][0] == kind and number not in taken
        need(good, "index", "a ref is relative to none, to one of another kind, or to one that another is relative to")
        taken.add(number)
        refs.append((kind, name, number))
    need(refs, "index", "no refs")
    return refs

def follow(steps, carried, base):
    """The rows that `references` name: numbers below `carried` are rows of the difference (delta 5.2)."""
    need(carried + base < 1 << 32, "index", "more rows than can be numbered")
    rows = list(accumulate(steps, lambda last, step: (last + 1 + step) % 2**32, initial=-1))[1:]
    need(all(row < carried + base for row in rows), "index", "a row that neither base nor difference have")
    return rows

def take_name(table):
    end = bytes(table.rest[:256]).find(0)
    need(end >= 0 or 0 in table.rest, "index", "a name does not end")
    need(end >= 0, "path", "a name of more than 255 bytes")
    return table.take(end + 1)[:-1]

def parse_times(table):
    """The new time by old time (delta 5.5)."""
    count = table.int("I")
    old, new = (list(zip(*table.planes("qI", count))) for _ in range(2))
    need(all(ns < 10**9 for _, ns in old + new), "index", "nanoseconds")
    need(ascends(old) and all(a != b for a, b in zip(old, new)), "index", "changes of time do not ascend, or are none")
    return dict(zip(old, new))

def parse_names(table):
    """Section 3: the edits."""
    ops = table.take(table.int("Q"))
    edits = [SimpleNamespace(name=take_name(table), op=op, parent=None, block=[]) for op in ops]
    return edits

def parse_changes(table, edits, attributes):
    """Section 4; returns the attribute rows that the edits use."""
    ops = [edit.op for edit in edits]
    need(all(op < 7 or 8 < op < 16 for op in ops), "index", "an op that there is not")

    def having(bit):
        return [edit for edit in edits if edit.op in NEW or edit.op > 8 and edit.op & bit]

    for edit in edits:
        edit.row = edit.time = edit.content = edit.link = edit.type = None
    plain = [edit for edit in edits if edit.op > 8 and not edit.op & 1]
    for edit, kind in zip(plain, table.take(len(plain))):
        need(kind in TYPES, "index", "a type that there is not")
        edit.type = TYPES[kind]
    [rows] = table.planes("I", len(having(1)))
    for edit, row in zip(having(1), rows):
        need(row < len(attributes), "index", "an attribute row that there is not")
        edit.row, edit.type = attributes[row], TYPES[attributes[row].mode >> 12]
    for edit, *time in zip(having(2), *table.planes("qI", len(having(2)))):
        need(time[1] < 10**9, "index", "nanoseconds")
        edit.time = tuple(time)
    for edit in edits:
        edit.has_content = edit.op in NEW or edit.op > 8 and bool(edit.op & 4)
        edit.has_block = edit.op == 0 or edit.type == "dir"
        good = edit.op in NEW or not edit.has_content or edit.type not in ("dir", "fifo", "socket")
        need(good, "index", "new content of a file that has none")
    return list(rows)

def parse_columns(found, own):
    """Sections 5 to 9; returns the objects of the regular files."""
    def having(*types):
        return [edit for edit in own.edits if edit.has_content and edit.type in types]

    blocks = [edit for edit in own.edits if edit.has_block]
    for edit, size in zip(blocks, *found.directories.planes("I", len(blocks))):
        edit.size = size
    [steps] = found.regulars.planes("I", len(having("file")))
    objects = follow(steps, len(own.ids), own.base_objects)
    devices = having("char", "block")
    links = [edit for edit in own.edits if edit.op in LINK]
    for edit, *edit.content in zip(devices, *found.devices.planes("II", len(devices))):
        pass
    for edit, edit.content in zip(having("file"), objects):
        pass
    for edit, edit.content in zip(having("symlink"), parse_targets(found.symlinks, len(having("symlink")))):
        pass
    for edit, edit.link in zip(links, *found.links.planes("I", len(links))):
        pass
    return objects

def lay_down(own):
    """Walk the trees of edits (delta 5.4); return the number of each root and the end of its edits."""
    edits, at = own.edits, 0
    for kind, _, relative in own.refs:
        if kind:
            continue
        root, start = at, at
        need(root < len(edits), "index", "the root of a ref is missing")
        edit, at = edits[root], at + 1
        good = edit.has_block and not edit.name and (edit.op == 0 or edit.op > 8 if relative else edit.op == 3)
        need(good, "index", "a root is no directory, has a name, or is not as its base says")
        waiting = [root]
        while waiting:
            above = waiting.pop()
            parent, below = edits[above], []
            need(at + parent.size <= len(edits), "index", "edits are missing")
            parent.block = list(range(at, at + parent.size))
            at += parent.size
            for number in parent.block:
                edit = edits[number]
                edit.parent = above
                need(edit.op or edit.size, "index", "a directory is named of which nothing changes")
                need(parent.op not in NEW or edit.op in (3, 5), "index", "the base has nothing in a new directory")
                if edit.has_block:
                    below.append(number)
            need(ascends([edits[number].name for number in parent.block]), "index", "names do not ascend")
            waiting += reversed(below)
        yield start, at
    need(at == len(edits), "index", "edits are left")

def check_links(own):
    linked = set()
    for start, end in own.roots:
        for number in range(start, end):
            if own.edits[number].op not in LINK:
                continue
            link = own.edits[number].link
            need(start <= link < end, "index", "a link to another ref")
            to = own.edits[link]
            good = to.op == 1 or to.type != "dir" and (to.op > 8 or to.op in NEW and link < number)
            need(good, "index", "a link to nothing that a name can be linked to")
            linked.add(link)
    alone = [number for number, edit in enumerate(own.edits) if edit.op == 1 and number not in linked]
    need(not alone, "index", "a file is named for no link")

def parse_ostree(table, whole, refs, index_len):
    """Section 14 (ostree 8)."""
    own = SimpleNamespace(beside=[], carried=[])
    count = table.int("I")
    [own.commits], beside = table.planes("I", count), table.take(count)

    def blobs(count):
        [lens] = table.planes("I", count)
        return [table.take(length) for length in lens]

    carried, metas = iter(blobs(own.commits.count(0))), iter(blobs(beside.count(2)))
    for commit, kind in zip(own.commits, beside):
        need(kind < 3 and (kind != 1 or commit), "index", "the commitmeta of a commit")
        own.carried.append(None if commit else next(carried))
        own.beside.append(next(metas) if kind == 2 else kind == 1)
    for data in filter(None, own.carried):
        parse_commit(data)
    for data in own.beside:
        if isinstance(data, bytes):
            gvariant.parse("a{sv}", data)
    own.dirmetas = blobs(table.int("I"))
    for data in own.dirmetas:
        parse_dirmeta(data, Attributes)

    [own.tree_lens] = table.planes("I", table.int("I"))
    need(sum(own.tree_lens) <= index_len, "index", "the dirtrees are longer than the index")
    own.frame = table.string("I")
    if own.tree_lens or own.frame:
        check_prefixed(own.frame, sum(own.tree_lens), 31, "index")
    need(own.tree_lens or not own.frame, "index", "a frame without a dirtree")

    [own.rows] = map(list, table.planes("I", table.int("I")))
    good = all(row < len(whole.attributes) and whole.attributes[row].mode >> 12 in (8, 10) for row in own.rows)
    need(good, "index", "an OSTree file that is neither a file nor a link")
    kinds = [whole.attributes[row].mode >> 12 for row in own.rows]
    own.objects = follow(*table.planes("I", kinds.count(8)), len(whole.ids), whole.base_objects)
    regulars, links = iter(own.objects), iter(parse_targets(table, kinds.count(10)))
    own.contents = [next(regulars if kind == 8 else links) for kind in kinds]

    [own.refs] = table.planes("I", refs)
    need(all(ref < len(own.commits) for ref in own.refs), "index", "a ref names no commit")
    own.collections = [parse_collection(table) for _ in range(refs)]
    return own
