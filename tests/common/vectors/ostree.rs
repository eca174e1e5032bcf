//! OSTree commits in the index (ostree 2).

use super::*;
use crate::bundle::Maxima;
use crate::bytes::narrow;
use crate::ostree::{
    Commit, OsTree, array, commit, commit_of, commit_with, dictionary, dirmeta, dirtree, framed, nested, of_root,
    with_root,
};
use crate::tree::{Node, paint};

pub(super) fn vectors() -> Vec<Vector> {
    [good(), fields(), repository(), forms(), values(), order(), counts(), checksums()].into_iter().flatten().collect()
}

/// Returns a commit's tree. Objects 0 to 5 are the commit, the dirmeta of all directories, and the dirtrees of the root, `b`, and `b/c`; its files
/// are `a`, `l`, `s`, and `b/t`, of which `s` has set-id bits.
pub(super) fn tree() -> Node {
    let c = dir([]);
    let b = dir([("c", c), ("t", file("one\n"))]);
    dir([("a", file("one\n")), ("b", b), ("l", symlink("a")), ("s", file("two\n").mode(0o4755)), ("z", file(""))])
}

pub(super) fn with_commit() -> Bundle {
    Bundle::with_commits(&[], &[("os/stable", vec![commit(tree())])], Packing::default())
}

fn reject_commit(name: &str, comment: &str, edit: impl FnOnce(&mut OsTree)) -> Vector {
    reject_from(with_commit(), name, "index", comment, |b| edit(b.index.ostree.as_mut().expect("it has a commit")))
}

fn reject_tree(name: &str, comment: &str, tree: Node) -> Vector {
    let bundle = Bundle::with_commits(&[], &[("main", vec![commit(tree)])], Packing::default());
    vector(name, "index", comment, bundle.encode())
}

/// Returns a commit with its commitmeta, and its parent.
pub(super) fn history() -> [Commit; 2] {
    let old = dir([("a", file("before\n")), ("b", dir([("x", file("one\n").xattr("user.k", b"v"))]))]);
    [Commit { tree: tree(), beside: Some(Vec::new()) }, commit(old)]
}

pub(super) fn plain() -> Node {
    dir([("a", file("one\n")), ("d", dir([("e", file("two\n"))]))])
}

/// Refs `apps`, `os/stable`, `os/testing` and `zoo`.
pub(super) fn with_history() -> Bundle {
    let refs = [("apps", plain()), ("zoo", plain())];
    let commits = [("os/stable", history().to_vec()), ("os/testing", vec![commit(dir([("n", file("new\n"))]))])];
    let mut bundle = Bundle::with_commits(&refs, &commits, Packing::default());
    if let Some(ostree) = &mut bundle.index.ostree {
        ostree.collections[1] = b"org.example.Os".to_vec();
    }
    bundle.layout.repository = Some(vec![(1, b"a summary".to_vec()), (2, b"its signatures".to_vec())]);
    bundle
}

fn good() -> Vec<Vector> {
    vec![
        accept("good-ostree", "one OSTree commit", with_commit()),
        accept(
            "good-ostree-history",
            "a commit with its commitmeta and its parent, one of a collection, trees beside them that share content, and a summary",
            with_history(),
        ),
        accept("good-ostree-repository", "all four files of a repository", {
            let mut bundle = with_commit();
            let files = [&b"a summary"[..], b"its signatures", b"an index of summaries", b""];
            bundle.layout.repository = Some((1..).zip(files.map(<[u8]>::to_vec)).collect());
            bundle
        }),
        accept("good-ostree-depth", "a commitmeta with 64 containers within one another", {
            let commit = Commit { tree: tree(), beside: Some(deep(63)) };
            Bundle::with_commits(&[], &[("main", vec![commit])], Packing::default())
        }),
        accept("good-ostree-values", "a commitmeta with values of all types", {
            let commit = Commit { tree: tree(), beside: Some(of_all_types()) };
            Bundle::with_commits(&[], &[("main", vec![commit])], Packing::default())
        }),
        accept(
            "good-ostree-pieces",
            "files in pieces, with holes between and behind, equal pieces side by side and apart, and one content of two owners",
            Bundle::with_commits(&[], &[("main", vec![commit(pieces())])], Packing::default()),
        ),
    ]
}

/// Returns a commitmeta with this many nested arrays, in a variant.
fn deep(arrays: usize) -> Vec<u8> {
    // Each variant holds the next one.
    let mut value = b"x\0".to_vec();
    let mut kind = "s";
    for _ in 1..arrays {
        value = [&value[..], &[0], kind.as_bytes()].concat();
        kind = "v";
    }
    let value = [&value[..], &[0], kind.as_bytes()].concat();
    dictionary(&[("k", "v", &value)])
}

/// Object 0 has the pieces A, A, 16 in a hole, B, A and a remainder; object 1 has B, and 16 in a hole; object 2 is a hole. `d` also has
/// object 0, with another owner.
fn pieces() -> Node {
    let (a, b, hole) = (paint(1, 4096), paint(2, 4096), vec![0; 16 * 4096]);
    let apart = [&a[..], &a, &hole, &b, &a, b"bit"].concat();
    let ends = [&b[..], &hole].concat();
    dir([
        ("a", file(apart.clone())),
        ("b", file(ends)),
        ("c", file([&hole[..], &[0; 4096]].concat())),
        ("d", file(apart).owner(1, 1).xattr("user.k", b"v")),
    ])
}

fn fields() -> Vec<Vector> {
    vec![
        reject_from(with_commit(), "ostree-section-missing", "index", "a ref of kind 1, and no section 11", |b| {
            b.index.ostree = None;
        }),
        reject("ostree-section-left", "index", "section 11 without a ref of kind 1", |b| {
            b.index.ostree = Some(OsTree::default());
        }),
        reject_commit("ostree-type", "a metadata object of type 5", |o| o.objects[1].0 = 5),
        reject_from(
            Bundle::with_commits(&[("a", dir([]))], &[("b", vec![commit(tree())])], Packing::default()),
            "ostree-file-type",
            "index",
            "l has the attributes of a directory",
            |b| {
                let ostree = b.index.ostree.as_mut().expect("it has a commit");
                ostree.targets.clear();
                let link = b.index.attributes.iter_mut().find(|row| row.mode & 0o170_000 == 0o120_000);
                link.expect("the row of l is there").mode = 0o040_777;
            },
        ),
        reject_from(
            with_commit(),
            "ostree-file-attributes",
            "index",
            "the last file has a row that is not there",
            |b| {
                let ostree = b.index.ostree.as_mut().expect("it has a commit");
                *ostree.rows.last_mut().expect("it has files") = narrow(b.index.attributes.len());
            },
        ),
        reject_commit("ostree-collection", "a collection id of one element", |o| {
            o.collections[0] = b"example".to_vec();
        }),
        reject_from(
            Bundle::with_commits(&[], &[("a", vec![commit(tree())]), ("b", Vec::new())], Packing::default()),
            "ostree-commit-column",
            "index",
            "the second ref names the dirmeta as its commit",
            |b| b.index.ostree.as_mut().expect("it has a commit").commits[1] = 2,
        ),
        reject_from(
            Bundle::with_commits(&[], &[("a", vec![commit(tree())]), ("b", Vec::new())], Packing::default()),
            "ostree-commit-missing",
            "index",
            "the second ref takes the next commit, and there is none",
            |_| {},
        ),
        reject_commit("ostree-symlink-checksum", "another target than the one that was hashed", |o| {
            o.targets[0] = b"b".to_vec();
        }),
    ]
}

fn repository() -> Vec<Vector> {
    let of = |name, comment, files: &[u8]| {
        let files = files.iter().map(|kind| (*kind, Vec::new())).collect();
        reject_from(with_commit(), name, "layout", comment, |b| b.layout.repository = Some(files))
    };
    vec![
        of("ostree-repository-none", "section 7 of the layout has no file", &[]),
        of("ostree-repository-kind", "a file of kind 5", &[5]),
        of("ostree-repository-order", "summary.sig stands before summary", &[2, 1]),
        of("ostree-repository-twice", "summary.idx stands twice", &[3, 3]),
        reject_from(with_commit(), "ostree-repository-long", "layout", "a byte follows the last file", |b| {
            b.layout.repository = Some(vec![(1, b"a summary".to_vec())]);
            b.edits.layout = longer(7);
        }),
        reject_from(with_commit(), "ostree-fields-left", "index", "a byte follows the last field of section 11", |b| {
            b.edits.index = longer(11);
        }),
        reject("ostree-repository-left", "layout", "section 7 of the layout without a ref of kind 1", |b| {
            b.layout.repository = Some(vec![(1, b"a summary".to_vec())]);
        }),
    ]
}

fn forms() -> Vec<Vector> {
    let meta = || dirmeta(&dir([]));
    vec![
        vector(
            "ostree-normal-form",
            "index",
            "an empty dirtree with a byte too many",
            of_root(vec![0, 0], meta()).encode(),
        ),
        reject_commit("ostree-commit-form", "a commit with a byte too many", |o| o.objects[0].1.push(0)),
        reject_commit("ostree-commitmeta-form", "a commitmeta of one byte", |o| o.objects.insert(1, (6, vec![1]))),
        reject_commit("ostree-depth", "a commitmeta with 65 containers within one another", |o| {
            o.objects.insert(1, (6, deep(64)));
        }),
        reject_commit("ostree-depth-type", "an empty array of a type that nests 64 deep", |o| {
            o.objects.insert(1, (6, dictionary(&[("k", &format!("{}s", "a".repeat(64)), b"")])));
        }),
        reject_commit("ostree-key-twice", "a commitmeta that has a key twice", |o| {
            o.objects.insert(1, (6, dictionary(&[("k", "s", b"a\0"), ("k", "s", b"b\0")])));
        }),
        reject_commit("ostree-commit-key-twice", "a commit whose metadata has a key twice", |o| {
            o.objects[0].1 = commit_with(dictionary(&[("k", "s", b"a\0"), ("k", "s", b"b\0")]), &tree(), None, "main");
        }),
        reject_commit("ostree-ref-binding", "a commit bound to a ref by a string, not by an array of them", |o| {
            let binding = dictionary(&[("ostree.ref-binding", "s", b"main\0")]);
            o.objects[0].1 = commit_with(binding, &tree(), None, "main");
        }),
        reject_commit("ostree-collection-binding", "a commit bound to a collection by a byte", |o| {
            let binding = dictionary(&[("ostree.collection-binding", "y", b"\x01")]);
            o.objects[0].1 = commit_with(binding, &tree(), None, "main");
        }),
        reject_tree("ostree-name", "a file called ..", dir([("..", file("x"))])),
        reject_tree("ostree-name-utf8", "a name that is no UTF-8", dir([]).with(b"\xff", file("x"))),
        reject_tree("ostree-names-order", "b stands before a", dir([("b", file("x")), ("a", file("y"))])),
        reject_tree("ostree-names-twice", "a file and a directory called a", dir([("a", file("x")), ("a", dir([]))])),
        vector(
            "ostree-dirmeta-type",
            "index",
            "the dirmeta of the root is a file's",
            of_root(dirtree(&dir([])), dirmeta(&file(""))).encode(),
        ),
        vector(
            "ostree-dirmeta-mode",
            "index",
            "the mode of the root's dirmeta has a bit above 0xffff",
            of_root(dirtree(&dir([])), [&meta()[..8], &[0, 1, 0x41, 0xed]].concat()).encode(),
        ),
        reject_from(
            of_root(dirtree(&dir([])), [&meta()[..], &array(&[framed(b"user.kv".to_vec(), &[6])])].concat()),
            "ostree-xattr-name-end",
            "index",
            "the name of an extended attribute lacks its zero byte",
            |_| {},
        ),
        reject_tree("ostree-xattr-long", "an extended attribute of 65537 bytes", dir([]).xattr("user.k", &[0; 65_537])),
        reject_from(
            with_root(dir([("a", file("x"))]), framed(array(&[framed([&b"a\0"[..], &[7; 31]].concat(), &[2])]), &[35])),
            "ostree-checksum-length",
            "index",
            "a dirtree names a file by a checksum of 31 bytes",
            |_| {},
        ),
        reject_commit("ostree-parent-length", "a parent of 31 bytes", |o| {
            o.objects[0].1 = commit_of(Vec::new(), &tree(), &[7; 31], "main");
        }),
        reject_tree("ostree-dirmeta-owner", "the root belongs to 2^32-1", dir([]).owner(u32::MAX, 0)),
        reject_tree(
            "ostree-dirmeta-xattrs",
            "user.b stands before user.a",
            dir([]).xattr("user.b", b"").xattr("user.a", b""),
        ),
    ]
}

/// Returns a commitmeta with values of all types, among them the longest array whose offsets have a byte and a longer one.
fn of_all_types() -> Vec<u8> {
    let nests = ["a".repeat(64).as_bytes(), b"s\0"].concat();
    let [short, long] = [254, 255].map(|len| array(&[[&vec![b'x'; len - 1][..], &[0]].concat()]));
    let wide = format!("({})", "y".repeat(4094));
    dictionary(&[
        ("boolean", "b", &[1]),
        ("byte", "y", &[0xff]),
        ("double", "d", &f64::NAN.to_le_bytes()),
        ("entries", "a{us}", b"\x01\0\0\0a\0\x06"),
        ("entry", "{sv}", b"a\0\0\0\0\0\0\0\x05\0y\x02"),
        ("handle", "h", &[1, 2, 3, 4]),
        ("i16", "n", &[1, 2]),
        ("i32", "i", &[1, 2, 3, 4]),
        ("i64", "x", &[1, 2, 3, 4, 5, 6, 7, 8]),
        ("long", "as", &long),
        ("maybe", "ms", b"a\0\0"),
        ("maybe-fixed", "mu", &[1, 2, 3, 4]),
        ("maybe-none", "ms", b""),
        ("none", "au", b""),
        ("numbers", "au", &[1, 0, 0, 0, 2, 0, 0, 0]),
        ("path", "o", b"/a/B_1\0"),
        ("path-root", "o", b"/\0"),
        ("short", "as", &short),
        ("signature", "g", b"a{sv}(yu)()\0"),
        ("signature-nests", "g", &nests),
        ("signature-none", "g", b"\0"),
        ("string", "s", b"\xc3\xa9\0"),
        ("string-none", "s", b"\0"),
        ("tuple", "(yu)", &[1, 0, 0, 0, 1, 0, 0, 0]),
        ("tuple-end", "(uy)", &[1, 0, 0, 0, 1, 0, 0, 0]),
        ("tuple-none", "()", &[0]),
        ("tuple-strings", "(sys)", b"a\0\x07b\0\x02"),
        ("u16", "q", &[1, 2]),
        ("u32", "u", &[1, 2, 3, 4]),
        ("u64", "t", &[1, 2, 3, 4, 5, 6, 7, 8]),
        ("variant", "v", b"\x05\0y"),
        ("wide", &wide, &[7; 4094]),
    ])
}

/// Values in a commitmeta that are not in normal form, and types that there are not (appendix A).
fn values() -> Vec<Vector> {
    let of = |name: &str, comment: &str, kind: &str, value: &[u8]| {
        let meta = dictionary(&[("k", kind, value)]);
        reject_commit(&format!("ostree-value-{name}"), comment, |o| o.objects.insert(1, (6, meta)))
    };
    let long = [&[b'x'; 253][..], &[0, 254, 0]].concat();
    let longest = format!("({})", "y".repeat(4095));
    let nests = ["a".repeat(65).as_bytes(), b"s\0"].concat();
    vec![
        of("boolean", "a boolean of 2", "b", &[2]),
        of("number", "an integer of 32 bits in 3 bytes", "u", &[1, 2, 3]),
        of("string-end", "a string that no zero byte follows", "s", b"ab"),
        of("string-nul", "a string with a NUL byte", "s", b"a\0b\0"),
        of("string-utf8", "a string that is no UTF-8", "s", b"\xff\0"),
        of("object-path", "an object path that ends in a slash", "o", b"/a/\0"),
        of("object-path-none", "an empty object path", "o", b"\0"),
        of("object-path-bytes", "an object path with a hyphen", "o", b"/a-b\0"),
        of("signature", "a signature of the type z", "g", b"z\0"),
        of("signature-open", "a signature of a tuple that does not end", "g", b"(y\0"),
        of("signature-long", "a signature of 256 bytes", "g", &[&[b'y'; 256][..], &[0]].concat()),
        of("signature-depth", "a signature that nests 65 deep", "g", &nests),
        of("maybe", "a byte of 1 follows the string in a maybe", "ms", b"a\0\x01"),
        of("maybe-fixed", "a zero byte follows the byte in a maybe", "my", &[5, 0]),
        of("padding", "a byte of 1 in the padding of a tuple", "(yu)", &[1, 1, 0, 0, 1, 0, 0, 0]),
        of("padding-end", "a byte of 1 at the end of a tuple of fixed size", "(uy)", &[1, 0, 0, 0, 1, 1, 0, 0]),
        of("unit", "a byte of 1 as the tuple of nothing", "()", &[1]),
        of("tuple-left", "a byte between the last member of a tuple and its offset", "(sy)", b"a\0\x07\x09\x02"),
        of("array-size", "an array of integers of 32 bits with 5 bytes", "au", &[1, 0, 0, 0, 2]),
        of("offset-wide", "an offset of 2 bytes where 1 is enough", "as", &long),
        of("offset-beyond", "the first element of an array ends behind the last", "aay", &[1, 2, 3, 2]),
        of("offset-before", "the second member of a tuple ends before the first", "(sss)", b"a\0b\0c\0\x01\x02"),
        of("type", "a value of the type z", "z", &[1]),
        of("type-none", "a value of no type", "", b""),
        of("type-two", "a value of two types", "yy", &[1, 1]),
        of("type-open", "a value of a tuple that does not end", "(y", &[1]),
        of("type-long", "a value of a type of 4097 bytes", &longest, &[7; 4095]),
        of("entry-key", "an entry whose key is a variant", "a{vs}", b""),
        of("entry-key-array", "an entry whose key is an array", "a{ays}", b""),
        of("entry-one", "an entry of one member", "a{s}", b""),
        of("entry-three", "an entry of three members", "a{sss}", b""),
    ]
}

fn order() -> Vec<Vector> {
    vec![
        reject_commit("ostree-order", "the dirtree of the root stands before its dirmeta", |o| o.objects.swap(1, 2)),
        reject_commit("ostree-twice", "the dirmeta stands twice", |o| {
            let meta = o.objects[1].clone();
            o.objects.insert(2, meta);
        }),
        reject_commit("ostree-missing", "the last dirtree is not there", |o| drop(o.objects.pop())),
        reject_commit("ostree-file-missing", "the last file of the last dirtree is not there", |o| {
            o.rows.pop();
            o.regulars.pop();
        }),
        reject_commit("ostree-file-left", "a file that no dirtree names", |o| {
            o.rows.push(o.rows[0]);
            o.regulars.push(1);
        }),
        reject_commit("ostree-left", "a dirmeta that nothing names", |o| {
            o.objects.push((3, dirmeta(&dir([]).mode(0o700))));
        }),
    ]
}

fn counts() -> Vec<Vector> {
    let of_parents = |name: &str, comment: &str, change: fn(&mut Maxima)| {
        reject_from(with_history(), name, "header", comment, |b| b.edits.maxima = edit(change))
    };
    vec![
        of_parents("maxima-parent-entries", "a commit that no ref names is not counted", |m| m.entries -= 1),
        of_parents("maxima-parent-inodes", "a file object that only a parent has is not counted", |m| m.inodes -= 1),
        of_parents("maxima-parent-logical", "a file that only a parent has is not counted", |m| m.logical -= 7),
        of_parents("maxima-parent-disk", "a metadata object that only a parent has is not counted", |m| m.disk -= 4096),
        reject_from(
            Bundle::with_commits(&[], &[("main", vec![commit(dir([])), commit(nested_once())])], Packing::default()),
            "maxima-parent-depth",
            "header",
            "the tree of a parent is deeper than the root says",
            |b| b.edits.maxima = edit(|maxima: &mut Maxima| maxima.depth = 0),
        ),
        reject_from(
            nested(40, &[b"a", b"b"]),
            "ostree-entries",
            "header",
            "a dirtree whose tree has 2^41 entries, of which the root says 8",
            |b| b.edits.maxima = edit(|maxima: &mut Maxima| (maxima.entries, maxima.inodes) = (8, 9)),
        ),
        reject("limit-entries", "limit", "more entries than the readers of these vectors take", |b| {
            b.edits.maxima = edit(|maxima: &mut Maxima| maxima.entries = (1 << 24) + 1);
        }),
        reject("limit-paths", "limit", "longer paths than the readers of these vectors take", |b| {
            b.edits.maxima = edit(|maxima: &mut Maxima| maxima.paths = (1 << 31) + 1);
        }),
        reject("limit-depth", "limit", "more directories in each other than the readers of these vectors take", |b| {
            b.edits.maxima = edit(|maxima: &mut Maxima| maxima.depth = 4097);
        }),
        reject("limit-logical", "limit", "more bytes of files than the readers of these vectors take", |b| {
            b.edits.maxima = edit(|maxima: &mut Maxima| maxima.logical = (1 << 42) + 1);
        }),
    ]
}

fn nested_once() -> Node {
    dir([("a", dir([("b", dir([]))]))])
}

/// Returns files that do not match their dirtree.
fn checksums() -> Vec<Vector> {
    let of = |name: &str, comment: &str, own: Node, other: Node, packing| {
        let bundle = Bundle::with_other_dirtrees(dir([("a", own)]), dir([("a", other)]), packing);
        vector(name, "object", comment, bundle.encode())
    };
    let small = Packing { piece_log2: 20, ..Packing::default() };
    let large = Packing::default();
    let unlike = |at: usize| {
        let mut content = paint(1, 3 * 4096 + 1);
        content[at] ^= 1;
        file(content)
    };
    let (hole, longer) = (vec![0; 16 * 4096], vec![0; 17 * 4096]);
    let behind = |len: usize| file([&paint(1, 4096)[..], &vec![0; len * 4096]].concat());
    let shared = |content: &[u8], mode| dir([("a", file(content)), ("b", file(content).mode(mode))]);
    let shares = |name: &str, comment: &str, content: &[u8]| {
        let bundle = Bundle::with_other_dirtrees(shared(content, 0o600), shared(content, 0o755), large);
        vector(name, "object", comment, bundle.encode())
    };
    let content =
        || of("ostree-file-content", "a holds `one`, and its dirtree names `One`", file("one"), file("One"), small);
    vec![
        content(),
        Vector {
            name: "ostree-file-stored".into(),
            expect: "ok".into(),
            check: Check::Verify,
            comment: "a holds `one`, and its dirtree names `One`, but objects are not read".into(),
            ..content()
        },
        of("ostree-file-owner", "a belongs to another owner", file("one"), file("one").owner(1, 0), small),
        of("ostree-file-xattr", "a lacks an extended attribute", file("one"), file("one").xattr("user.k", b""), small),
        of("ostree-file-empty", "a is empty, and its dirtree names a file of a byte", file(""), file("x"), small),
        of("ostree-file-hole", "a is one hole, of a block less", file(hole), file(longer), small),
        of("ostree-file-piece", "a byte of the second of four pieces", unlike(4096), unlike(4097), large),
        of("ostree-file-piece-last", "the last piece, of a byte", unlike(0), unlike(3 * 4096), large),
        of("ostree-file-piece-hole", "a hole behind a piece, of a block less", behind(16), behind(17), large),
        shares("ostree-file-second", "two files of one object: the mode of the second is another", b"one"),
        shares("ostree-file-piece-second", "the same in pieces", &paint(1, 4097)),
        reject_from(
            Bundle::with_commits(&[], &[("main", vec![commit(dir([("a", file(paint(1, 3 * 4096)))]))])], large),
            "piece-chunks-descend",
            "layout",
            "the chunks of the first two pieces of an OSTree file have changed places",
            |b| {
                (b.layout.pieces[0].0, b.layout.pieces[1].0) = (b.layout.pieces[1].0, b.layout.pieces[0].0);
                b.layout.chunks.swap(0, 1);
                b.stored.swap(0, 1);
            },
        ),
    ]
}
