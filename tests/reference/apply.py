"""Applying a difference to its bases, which produces the wanted index (6.7.3 to 6.7.5)."""
import hashlib
from types import SimpleNamespace

import gvariant
from difference import LINK, NEW
from encoding import need
from index import write_index
from ostree import parse_commit

DIRTREE = "(a(say)a(sayay))"
KINDS = {"dirtree": 2, "dirmeta": 3, "commit": 4, "commitmeta": 6}

def sha256(data):
    return hashlib.sha256(data).digest()

class Writer:
    """The tables of an index, filled in the order in which their rows are used."""

    def __init__(self):
        self.names, self.links, self.inodes, self.attributes, self.objects = [], [], [], {}, {}

    def row(self, attributes):
        return self.attributes.setdefault(attributes, len(self.attributes))

    def object(self, key):
        """The value of the object column for this object."""
        if key in self.objects:
            return self.objects[key] + 1
        self.objects[key] = len(self.objects)
        return 0

    def inode(self, attributes, time, own):
        self.inodes.append((self.row(attributes), time, own))
        return len(self.inodes) - 1

def apply_difference(own, bases):
    """Return the bytes of the wanted index; `bases` are parsed indexes."""
    base = bases[0]
    objects = [row for index in bases for row in zip(index.sizes, index.ids)]
    need(own.base_objects == len(objects), "index", "the bases have another number of objects")
    need(own.base_refs == [(base.kinds[ref], ref) for ref in base.refs], "index", "the base has other refs")
    need(not set(own.ids) & {id_ for _, id_ in objects}, "index", "an object is carried that the bases have")
    table, writer = [*zip(own.sizes, own.ids), *objects], Writer()
    Trees(own, base, table, writer).lay_down()
    ostree = lay_commits(own, base, table, writer) if own.ostree else None
    carried = [id_ for _, id_ in writer.objects if id_ in set(own.ids)]
    need(carried == own.ids, "index", "carried objects stand in another order")
    refs = [(kind, name) for kind, name, _ in own.refs]
    return write_index(refs, writer.names, writer.links, writer.inodes, list(writer.attributes),
                       list(writer.objects), own.verity, ostree)

class Trees:
    def __init__(self, own, base, table, writer):
        self.own, self.base, self.table, self.writer = own, base, table, writer
        self.names, self.roots, self.known, self.changed = {}, {}, {}, {}
        for ref, depth, above, name, inode in base.order:
            if base.types[inode] == "dir":
                self.names.setdefault(inode, {})
            if depth:
                self.names[above][name] = inode
            else:
                self.roots[ref] = inode
        self.resolve()

    def resolve(self):
        """Look up the base's entry for each edit: an inode, and the directory that is kept."""
        own, types = self.own, self.base.types
        relative = [number for kind, _, number in own.refs if not kind]
        for (start, _), number in zip(own.roots, relative):
            edit = own.edits[start]
            edit.inode = edit.directory = self.roots[own.base_refs[number - 1][1]] if number else None
        for edit in own.edits:
            if edit.parent is not None:
                names = self.names.get(own.edits[edit.parent].directory, {})
                edit.inode = names.get(edit.name)
                need((edit.inode is None) == (edit.op in (3, 5)), "index", "a name is missing in the base, or there")
                kind = types[edit.inode] if edit.inode is not None else None
                good = {0: kind == "dir", 1: kind != "dir"}.get(edit.op, edit.op < 8 or kind == edit.type)
                need(good, "index", "a file has another type in the base")
                stays = edit.op == 0 or edit.op > 8 and kind == "dir"
                edit.directory = edit.inode if stays else None
            if edit.op > 8:
                need(edit.inode not in self.changed, "index", "a file is changed twice")
                self.changed[edit.inode] = edit

    def file_of(self, number):
        """Return the file that an edit refers to: an edit that makes a file, or an inode of the base."""
        edit = self.own.edits[number]
        return ("new", number) if edit.op in NEW else ("base", edit.inode)

    def block(self, edit, directory):
        """Return the names of a directory: for each the file, and its edit."""
        block = {name: (("base", inode), None) for name, inode in self.names.get(directory, {}).items()}
        for number in edit.block if edit else ():
            below = self.own.edits[number]
            if below.op == 2:
                del block[below.name]
            elif below.op in LINK:
                block[below.name] = self.file_of(below.link), None
            else:
                block[below.name] = self.file_of(number), below
        return sorted(block.items())

    def add(self, file, edit):
        """Return the inode of a file, and its block if it is a directory."""
        kind, number = file
        if kind == "new":
            made = self.own.edits[number]
            block = self.block(made, None) if made.type == "dir" else []
            self.known[file] = self.writer.inode(made.row, made.time, self.part(made.type, made.content, block))
            return block
        base, changed = self.base, self.changed.get(number)
        row, kind = base.inodes[number], base.types[number]
        time = base.mtime[number], base.mtime_ns[number]
        time = self.own.times.get(time, time)
        block = self.block(edit, number) if kind == "dir" else []
        if changed:
            row, time = changed.row or row, changed.time or time
        if changed and changed.has_content:
            part = self.part(kind, changed.content, block)
        elif kind == "file":
            part = self.writer.object((base.sizes[base.object[number]], base.ids[base.object[number]]))
        else:
            part = self.part(kind, base.target.get(number) or base.device.get(number), block)
        self.known[file] = self.writer.inode(row, time, part)
        return block

    def part(self, kind, content, block):
        if kind == "dir":
            return len(block)
        return self.writer.object(self.table[content]) if kind == "file" else content

    def lay_down(self):
        for start, _ in self.own.roots:
            waiting = [self.add(self.file_of(start), self.own.edits[start])]
            while waiting:
                below = []
                for name, (file, edit) in waiting.pop():
                    self.writer.names.append(name)
                    self.writer.links.append(self.known[file] + 1 if file in self.known else 0)
                    if file not in self.known:
                        below.append(self.add(file, edit))
                waiting += reversed(below)

def lay_commits(whole, base, table, writer):
    """Return the payload of section 11, in parts."""
    own, theirs = whole.ostree, base.ostree
    objects, files = (theirs.objects, base.ostree_files) if theirs else ([], [])
    good = own.base_objects == len(objects) and own.base_files == len(files)
    need(good, "index", "the base has another number of OSTree objects")

    def of_base(kind, number):
        need(objects[number][0] == kind, "index", f"the base's object {number} is no {kind}")
        return objects[number][1]

    def meta_sum(row):
        carried = len(own.dirmetas)
        return sha256(own.dirmetas[row] if row < carried else of_base("dirmeta", row - carried))

    def tree_sum(row):
        return sha256(made[row] if row in made else of_base("dirtree", row - len(own.trees)))

    def file_sum(row):
        return own.checksums[row] if row < len(own.rows) else files[row - len(own.rows)][0]

    made = {}
    for row in own.upwards:
        tree = own.trees[row]
        like = gvariant.parse(DIRTREE, of_base("dirtree", tree.like - 1)) if tree.like else ([], [])
        names = {name.encode(): sums for part in like for name, *sums in part}
        for edit in tree.edits:
            had = names.pop(edit.name, None)
            kind = had and ("file" if len(had) == 1 else "dir")
            good = {0: had, 1: not had, 2: had, 3: not had, 4: kind == "file"}.get(edit.op, kind == "dir")
            need(good, "index", "an edit of a dirtree does not fit the base")
            if edit.op in (1, 2):
                names[edit.name] = [file_sum(edit.file)]
            elif edit.op:
                old = had if edit.op > 4 else (None, None)
                names[edit.name] = [old[0] if edit.tree is None else tree_sum(edit.tree),
                                    old[1] if edit.meta is None else meta_sum(edit.meta)]
        rows = [[name.decode(), *sums] for name, sums in sorted(names.items())]
        made[row] = gvariant.write(DIRTREE, [[row for row in rows if len(row) == size] for size in (2, 3)])

    known = {(kind, sha256(data)): data for kind, data in objects if kind != "commitmeta"}
    known |= {("dirtree", sha256(data)): data for data in made.values()}
    known |= {("dirmeta", sha256(data)): data for data in own.dirmetas}
    contents = {sum_: (row, content, "base") for sum_, row, content in files}
    contents |= {sum_: (whole.attributes[row], content, "own") for sum_, row, content in zip(own.checksums, own.rows, own.contents)}
    metas, met, laid = [], set(), {}

    def meet(kind, checksum):
        """Return the object on its first visit."""
        if (kind, checksum) in met:
            return None
        need((kind, checksum) in known, "index", f"a {kind} that neither base nor difference have")
        met.add((kind, checksum))
        metas.append((KINDS[kind], known[kind, checksum]))
        return known[kind, checksum]

    numbers = []
    for commit, data, beside, root, sums in zip(own.commits, own.carried, own.beside, own.roots, own.sums):
        if commit:
            data = of_base("commit", commit - 1)
        else:
            good = sums[1:] == (tree_sum(root.tree), meta_sum(root.meta))
            need(good, "index", "a commit's root is not the one that it says")
        numbers.append(len(metas))
        metas.append((KINDS["commit"], data))
        if beside is True:
            behind = commit < len(objects) and objects[commit][0] == "commitmeta"
            need(behind, "index", "the base has nothing beside a commit")
            beside = objects[commit][1]
        if beside is not False:
            metas.append((KINDS["commitmeta"], beside))
        _, dirtree, dirmeta = parse_commit(data)
        meet("dirmeta", dirmeta)
        waiting = [dirtree]
        while waiting:
            if (data := meet("dirtree", waiting.pop())) is None:
                continue
            names, dirs = gvariant.parse(DIRTREE, data)
            for _, sum_ in names:
                need(bytes(sum_) in contents, "index", "a file that neither base nor difference have")
                laid.setdefault(bytes(sum_))
            for _, _, meta in dirs:
                meet("dirmeta", bytes(meta))
            waiting += [bytes(tree) for _, tree, _ in reversed(dirs)]
    carried = set(own.checksums)
    need([sum_ for sum_ in laid if sum_ in carried] == own.checksums, "index", "carried files stand in another order")

    rows, regulars, links = [], [], []
    for row, content, whose in map(contents.get, laid):
        rows.append(writer.row(row))
        if row.mode >> 12 == 10:
            links.append(content)
        else:
            key = table[content] if whose == "own" else (base.sizes[content], base.ids[content])
            regulars.append(writer.object(key))
    commits = [numbers[ref] + 1 if known else 0 for ref, known in zip(own.refs, own.known)]
    return metas, rows, regulars, links, commits, own.collections, own.repository
