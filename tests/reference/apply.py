"""Applying a difference to its bases, which produces the wanted index (delta 5.6 and ostree 8)."""
import hashlib
from types import SimpleNamespace

import gvariant
from difference import LINK, NEW
from encoding import Cursor, need, unzstd
from index import write_index
from ostree import DIRTREE, parse_commit, parse_dirtree

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

def restore(own, prefix):
    """Return the carried dirtrees with the checksums that zeros stand for, and the numbers of the roots (ostree 8.2)."""
    if not own.tree_lens:
        return [], set()
    data = Cursor(unzstd(own.frame, sum(own.tree_lens), 31, "index", prefix), "index")
    trees = [parse_dirtree(data.take(length)) for length in own.tree_lens]
    zeros = [[entry for entry in dirs if not any(entry[1])] for _, dirs in trees]
    made, roots, following = [None] * len(trees), set(), iter(range(len(trees)))
    for root in following:
        roots.add(root)
        waiting = [(root, None, iter(zeros[root]))]
        while waiting:
            number, above, rest = waiting[-1]
            if entry := next(rest, None):
                below = next(following, None)
                need(below is not None, "index", "zeros stand for a dirtree behind the last one")
                waiting.append((below, entry, iter(zeros[below])))
            else:
                made[number] = gvariant.write(DIRTREE, trees[number])
                if above:
                    above[1] = list(sha256(made[number]))
                waiting.pop()
    return made, roots

def lay_commits(whole, base, table, writer):
    """Return the payload of section 11, in parts (ostree 8.3)."""
    own, theirs = whole.ostree, base.ostree
    objects, files = (theirs.objects, base.ostree_files) if theirs else ([], [])
    made, roots = restore(own, b"".join(data for _, data in objects))
    known = {(kind, sha256(data)): data for kind, data in objects if kind != "commitmeta"}
    carried = [("dirtree", sha256(data)) for data in made] + [("dirmeta", sha256(data)) for data in own.dirmetas]
    need(len(set(carried) - set(known)) == len(carried), "index", "an object is carried twice, or the base has it")
    known |= zip(carried, made + own.dirmetas)
    next_of = {"dirtree": iter(carried[:len(made)]), "dirmeta": iter(carried[len(made):])}
    rows_of_base = list(zip(base.sizes, base.ids))
    of_base = {sum_: (row, content, rows_of_base) for sum_, row, content in files}
    new_files = ((whole.attributes[row], content, table) for row, content in zip(own.rows, own.contents))
    metas, met, laid, commits = [], set(), {}, []
    own_roots, carried = {carried[number] for number in roots}, set(carried)

    def meet(kind, checksum, is_root=True):
        """Return the object on its first visit."""
        key = kind, checksum
        if key in met:
            return None
        need(key in known, "index", f"a {kind} that neither base nor difference have")
        met.add(key)
        if key in carried:
            need(next(next_of[kind], None) == key, "index", f"a carried {kind} is in another place")
            need(is_root or key not in own_roots, "index", "the checksum of a carried dirtree where zeros are due")
        metas.append((KINDS[kind], known[key]))
        return known[key]

    for commit, data, beside in zip(own.commits, own.carried, own.beside):
        if commit:
            good = commit <= len(objects) and objects[commit - 1][0] == "commit"
            need(good, "index", "the base has no commit of that number")
            data = objects[commit - 1][1]
        else:
            need(("commit", sha256(data)) not in known, "index", "a commit is carried that the base has")
        parent, dirtree, dirmeta = parse_commit(data)
        commits.append((len(metas), sha256(data), parent))
        metas.append((KINDS["commit"], data))
        if beside is True:
            good = commit < len(objects) and objects[commit][0] == "commitmeta"
            need(good, "index", "the base has no commitmeta of a commit")
            beside = objects[commit][1]
        if beside is not False:
            metas.append((KINDS["commitmeta"], beside))
        meet("dirmeta", dirmeta)
        waiting = [dirtree]
        while waiting:
            checksum = waiting.pop()
            if (data := meet("dirtree", checksum, checksum == dirtree)) is None:
                continue
            names, dirs = parse_dirtree(data)
            for _, sum_ in names:
                if bytes(sum_) not in laid:
                    file = of_base.get(bytes(sum_)) or next(new_files, None)
                    need(file, "index", "more OSTree files are named than there are")
                    laid[bytes(sum_)] = file
            for _, _, meta in dirs:
                meet("dirmeta", bytes(meta))
            waiting += [bytes(tree) for _, tree, _ in reversed(dirs)]
    left = any(next(keys, None) for keys in next_of.values()) or next(new_files, None)
    need(not left, "index", "a carried dirtree, dirmeta or file is left")

    rows, regulars, links, come, column = [], [], [], 0, []
    for row, content, objects in laid.values():
        rows.append(writer.row(row))
        if row.mode >> 12 == 10:
            links.append(content)
        else:
            regulars.append(writer.object(objects[content]))
    for ref in own.refs:
        need(ref <= come, "index", "a ref names a commit behind the next one")
        column.append(commits[ref][0] + 1 if ref < come else 0)
        if ref == come:
            come += 1
            while come < len(commits) and commits[come - 1][2] == commits[come][1]:
                come += 1
    need(come == len(commits), "index", "a commit is left that no ref takes")
    return metas, rows, regulars, links, column, own.collections
