"""What an input contains, as the JSON beside a vector (spec/vectors/README.md)."""
import hashlib, json, re

def of_bundle(bundle):
    """The content of a bundle; for a delta bundle, that of what it makes with its bases."""
    root = bundle.root
    content = dict(name=root.name.decode(), version=root.version, created=root.created, expires=root.expires,
                   compatible=[tag.decode() for tag in root.tags],
                   annotations={key.decode(): text.decode() for key, text in root.annotations},
                   unknown_envelopes=[kind for kind, _ in bundle.envelopes if kind not in (1, 2)],
                   index_digest=root.index_digest.hex())
    if root.bases:
        content["bases"] = [base(*fields) for fields in root.bases]
    if root.images:
        content["images"] = [dict(ref=ref, version=version, algorithm=algorithm, digest=digest.hex())
                             for ref, version, algorithm, digest in root.images]
    return content | of_index(bundle.index)

def of_request(request, index):
    """The content of a request, with the index that it was completed to."""
    return base(request.version, request.name, request.digest, request.index_len) | of_index(index)

def base(version, name, digest, index_len):
    return dict(name=name.decode(), version=version, index_digest=digest.hex(), index_len=index_len)

def of_index(index):
    return dict(refs=list(refs(index)), entries=list(entries(index)))

def refs(index):
    ostree = index.ostree
    commits = zip(ostree.commits, ostree.collections) if ostree else ()
    for ref in index.refs:
        row = dict(name=ref.decode(), kind="ostree" if index.kinds[ref] else "tree")
        if index.kinds[ref]:
            commit, collection = next(commits)
            row["commit"] = hashlib.sha256(ostree.objects[commit][1]).hexdigest()
            if collection:
                row["collection"] = collection.decode()
        yield row

def entries(index):
    """A row for each root and entry in tree order."""
    paths = {}
    for ref, depth, above, name, inode in index.order:
        row, path = index.inodes[inode], paths[above] + escape(name) if depth else "."
        if index.types[inode] == "dir":
            paths[inode] = path + "/" if depth else ""
        line = dict(ref=escape(ref), path=path, type=index.types[inode], mode=row.mode & 0o7777,
                    uid=row.uid, gid=row.gid, mtime=index.mtime[inode], mtime_ns=index.mtime_ns[inode])
        if (number := index.object.get(inode)) is not None:
            line |= dict(size=index.sizes[number], id=index.ids[number].hex())
        if inode in index.target:
            line |= dict(target=escape(index.target[inode]))
        line |= zip(("major", "minor"), index.device.get(inode, ()))
        if row.xattrs:
            line |= dict(xattrs={escape(name): value.hex() for name, value in row.xattrs})
        yield line | dict(inode=inode)

def escape(name):
    text, way = name.decode("utf-8", "surrogateescape"), ("utf-8", "surrogateescape")
    return re.sub("[%\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\udc80-\udcff]",
                  lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode(*way)), text)

def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)

def document(content):
    """The file's text: one key per line; in a list of objects, one row per line."""
    def value(of):
        is_rows = isinstance(of, list) and of and isinstance(of[0], dict)
        return "[\n" + ",\n".join(f"    {compact(row)}" for row in of) + "\n  ]" if is_rows else compact(of)
    return "{\n" + ",\n".join(f'  "{key}": {value(of)}' for key, of in content.items()) + "\n}\n"
