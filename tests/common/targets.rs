//! The bodies of the fuzz targets. Errors are fine; a panic or a broken promise is a bug. `cargo test` replays the corpora through them.

use sealift::order::OrderProfile;
use sealift_container::{Anatomy, Blocks, Content, Limits as ContainerLimits, ReadAt as _};
use sealift_format::difference::{NewContent, Op, Reference};
use sealift_format::ostree::{Commit, Dictionary, DirTree, Summary, dirmeta, file, ostreemeta};
use sealift_format::volume::{front_len, stored_chunks};
use sealift_format::{
    ByteDifference, Contents, Difference, Envelope, FrameDecoder, Head, Identity, Index, IndexBuilder, Inode,
    InodeKind, Kind, Layout, Limits, Objects, OsTree, Part, Preamble, RecipeSums, Recovery, Request, Root, Row,
    SignedList, Volume, check_frame, data_len, frame_window, maxima, verity,
};
use sealift_verify::dm_verity::{HEAD_LEN, HashTree, Superblock, find_superblock, superblock_range};
use sealift_verify::kernel_signature::sign::{KernelCertificate, KernelKey};
use sealift_verify::kernel_signature::{LEN_MAX, check};
use sealift_verify::trust::{AllowedSigners, KeyId, Now, RevocationList, SshSignature};

use crate::bytes::{hash, narrow, wide};
use crate::frame::frame as compress;
use crate::pkcs7::CERTIFICATE;
use crate::reader::{Portions, open, read, walk};
use crate::vector::Check;

/// The limit for entries of an index without a root.
pub const ENTRIES_MAX: u64 = 1 << 20;

/// A target's name and body.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const ALL: [Target; 20] = [
    ("preamble_head", preamble_head),
    ("index", index),
    ("layout", layout),
    ("delta_layout", delta_layout),
    ("frame", frame),
    ("opener", opener),
    ("bundle_deep", bundle_deep),
    ("sshsig", sshsig),
    ("kernel_signature", kernel_signature),
    ("allowed_signers", allowed_signers),
    ("revocation", revocation),
    ("order_profile", order_profile),
    ("ostree_object", ostree_object),
    ("difference", difference),
    ("suffix", suffix),
    ("recovery", recovery),
    ("request", request),
    ("volume", volume),
    ("dm_verity", dm_verity),
    ("container", container),
];

/// Preamble and head encode to the bytes that they were parsed from, and a root to bytes that parse to an equal root.
pub fn preamble_head(data: &[u8]) {
    if let Some(start) = data.get(..32)
        && let Ok(preamble) = Preamble::parse(start)
    {
        assert_eq!(preamble.encode(), start);
        if let Some(root) = data.get(32..)
            && let Ok(root) = Root::parse(root)
        {
            assert_eq!(Root::parse(&root.encode().expect("it fits")), Ok(root));
        }
    }
    if let Ok(head) = Head::parse(data) {
        assert_eq!(head.encode(), data);
        assert_eq!(Root::parse(&head.root().encode().expect("it fits")).as_ref(), Ok(head.root()));
        assert!(head.file_len() >= head.chunks_at());
    }
}

/// One content has one index: the builder makes the same bytes from a parsed index.
pub fn index(data: &[u8]) {
    let Ok(index) = Index::parse(data.to_vec(), ENTRIES_MAX) else { return };
    assert_eq!(rebuilt(&index), data);
    let mut named = vec![false; index.inodes().len()];
    for entry in index.entries() {
        let first = !std::mem::replace(&mut named[entry.inode.at()], true);
        assert_eq!(first, entry.is_first_name());
    }
    for directory in index.directories() {
        for number in directory.entries() {
            let entry = index.entry(number);
            assert_eq!(index.find_entry(directory, index.name(entry)), Some((number, entry)));
        }
    }
}

fn rebuilt(index: &Index) -> Vec<u8> {
    let mut builder = IndexBuilder::default();
    let add = |builder: &mut IndexBuilder, number: Row<Inode>| {
        let inode = index.inode(number);
        let node = index.node(inode.kind);
        assert_eq!(builder.inode(index.attributes(inode), (inode.mtime, inode.mtime_ns), node), number);
    };
    for tree in index.refs() {
        if let Some(ostree) = &tree.ostree {
            builder.commit_ref(&tree.name, ostree.is_known.then_some(ostree.commit), &ostree.collection);
            continue;
        }
        builder.begin_ref(&tree.name);
        add(&mut builder, index.directory(tree.directory).inode);
        for directory in tree.directories() {
            for number in index.directory(directory).entries() {
                let entry = index.entry(number);
                builder.entry(index.name(entry), (!entry.is_first_name()).then_some(entry.inode));
                if entry.is_first_name() {
                    add(&mut builder, entry.inode);
                }
            }
        }
    }
    for object in index.ostree().map_or(&[][..], OsTree::objects) {
        builder.ostree_object(object.kind, index.ostree_bytes(object));
    }
    for file in index.ostree().map_or(&[][..], OsTree::files) {
        assert!(
            matches!(file.kind, InodeKind::Regular(_) | InodeKind::Symlink(_)),
            "an OSTree file is {:?}",
            file.kind
        );
        builder.ostree_file(index.ostree_attributes(file), index.node(file.kind));
    }
    builder.finish(index.objects().iter().copied(), index.verity()).expect("it fits")
}

/// Splits a length and that many bytes off.
fn part<'a>(data: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, rest) = data.split_first_chunk()?;
    let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
    let (part, rest) = rest.split_at_checked(len)?;
    *data = rest;
    Some(part)
}

/// The input of [`layout`] and [`bundle_deep`].
pub fn layout_input(piece_log2: u8, index: &[u8], layout: &[u8], chunks: &[u8]) -> Vec<u8> {
    let len = |bytes: &[u8]| narrow(bytes.len()).to_le_bytes();
    [&[piece_log2][..], &len(index), index, &len(layout), layout, chunks].concat()
}

/// Piece size, index, layout, the layout's bytes, and what follows it.
type Parsed<'a> = (u8, Index, Layout, &'a [u8], &'a [u8]);

fn parsed_layout(data: &[u8]) -> Option<Parsed<'_>> {
    let (piece_log2, mut rest) = data.split_first()?;
    let piece_log2 = 12 + piece_log2 % 15;
    let index = Index::parse(part(&mut rest)?.to_vec(), ENTRIES_MAX).ok()?;
    let bytes = part(&mut rest)?;
    let layout = Layout::parse(bytes, &Objects::from(&index), piece_log2).ok()?;
    Some((piece_log2, index, layout, bytes, rest))
}

/// A layout encodes to the bytes that it was parsed from, unless these have unknown sections; and it places each object once.
pub fn layout(data: &[u8]) {
    let Some((piece_log2, index, layout, bytes, _)) = parsed_layout(data) else { return };
    let encoded = layout.encode().expect("it fits");
    assert_eq!(Layout::parse(&encoded, &Objects::from(&index), piece_log2).as_ref(), Ok(&layout));
    assert!(encoded == bytes || encoded.len() < bytes.len());
    for (number, object) in Row::all(index.objects()) {
        let data = data_len(layout.holes_of(number), 0..object.size);
        let is_large = object.size > 1 << piece_log2;
        let grouped = layout.grouped.iter().filter(|member| **member == number).count();
        assert_eq!(grouped, usize::from(!is_large && data > 0 && layout.recipes.of(number).is_none()));
        let pieces = if is_large { object.size.div_ceil(1 << piece_log2) } else { 0 };
        assert_eq!(wide(layout.pieces_of(number).len()), pieces);
    }
    let Ok(maxima) = maxima(&index, &layout, piece_log2, 10) else { return };
    assert!(maxima.chunks_stored >= maxima.chunk_stored.into());
}

/// The input of [`delta_layout`].
pub fn delta_layout_input(piece_log2: u8, difference: &[u8], layout: &[u8]) -> Vec<u8> {
    [&[piece_log2][..], &narrow(difference.len()).to_le_bytes(), difference, layout].concat()
}

/// A delta bundle's layout encodes to the bytes that it was parsed from, unless these have unknown sections; what is stored for each object, and what
/// making all of them takes, can be told.
pub fn delta_layout(data: &[u8]) {
    let Some((piece_log2, mut bytes)) = data.split_first() else { return };
    let piece_log2 = 12 + piece_log2 % 15;
    let Some(difference) = part(&mut bytes) else { return };
    let Ok(difference) = Difference::parse(difference, ENTRIES_MAX, INDEX_LEN) else { return };
    let Ok(layout) = Layout::parse(bytes, &Objects::from(&difference), piece_log2) else { return };
    let encoded = layout.encode().expect("it fits");
    assert_eq!(Layout::parse(&encoded, &Objects::from(&difference), piece_log2).as_ref(), Ok(&layout));
    assert!(encoded == bytes || encoded.len() < bytes.len());
    let recipes = &layout.recipes;
    for (number, _) in Row::all(difference.objects()) {
        assert!(recipes.stored_of(number).iter().all(|stored| recipes.of(*stored).is_none()));
    }
    if let Ok(sums) = RecipeSums::of(recipes, difference.objects()) {
        assert_eq!(sums.leaves, wide(recipes.leaves.len()));
    }
}

/// The input of [`difference`].
pub fn difference_input(base: &[u8], difference: &[u8]) -> Vec<u8> {
    [&narrow(base.len()).to_le_bytes(), base, difference].concat()
}

/// The longest index that a difference may claim to make.
pub const INDEX_LEN: u64 = 1 << 20;

/// A difference encodes to the bytes that it was parsed from, and can be listed completely. The index that it makes from a base is at most as large
/// as both of them allow, besides dirtrees of at most [`INDEX_LEN`] bytes. The input begins with the index of the base, which may be invalid.
pub fn difference(data: &[u8]) {
    let mut bytes = data;
    let Some(base) = part(&mut bytes) else { return };
    let Ok(difference) = Difference::parse(bytes, ENTRIES_MAX, INDEX_LEN) else { return };
    assert_eq!(difference.encode().as_deref(), Ok(bytes));
    list(&difference);
    let Ok(base) = Index::parse(base.to_vec(), ENTRIES_MAX) else { return };
    if let Ok(made) = difference.apply(&[&base]) {
        assert!(made.len() <= base.bytes().len() + 16 * bytes.len() + usize::try_from(INDEX_LEN).expect("it is small"));
        let _ = Index::parse(made, ENTRIES_MAX);
    }
}

/// A request encodes to bytes that parse to an equal request. The completed index has the declared length, and its own request has the same outline.
/// The input has no BLAKE3 at its end.
pub fn request(data: &[u8]) {
    let limits = Limits { index_len: 1 << 20, entries: ENTRIES_MAX, ..Limits::default() };
    let Ok(request) = Request::parse(&[data, &hash(data)].concat(), &limits) else { return };
    let again = Request::parse(&request.encode(&compress(request.outline())).expect("it fits"), &limits);
    assert_eq!(again.as_ref(), Ok(&request));
    let Ok(index) = request.complete(|_, _| None) else { return };
    assert_eq!(wide(index.bytes().len()), request.base.index_len);
    let of_index = Request::of(&index, request.base.index_digest, request.base.identity.clone());
    assert_eq!(of_index.expect("all ids differ in what was sent").outline(), request.outline());
}

/// A list re-encodes to the same bytes, and names nothing outside its directory. The input is all but its closing BLAKE3.
///
/// # Panics
/// Panics if one of these does not hold.
pub fn channel(data: &[u8]) {
    let bytes = [data, &hash(data)].concat();
    let Ok(signed) = SignedList::parse(&bytes) else { return };
    assert_eq!(signed.encode(), bytes);
    assert_eq!(signed.list().signed().as_deref(), Ok(signed.signed()));
    for row in &signed.list().files {
        assert!(!row.file.contains('/') && !row.file.starts_with('.'));
    }
}

/// A volume's header encodes to the bytes that it was parsed from, and lies in its bundle. However the bundle of its head and layout is split, the volumes
/// are it without a gap. The input is a volume without the BLAKE3 that closes its header.
pub fn volume(data: &[u8]) {
    let Some((fields, rest)) = data.split_at_checked(80) else { return };
    let header = [fields, &hash(fields)].concat();
    let Ok(volume) = Volume::parse(&header) else { return };
    assert_eq!(volume.encode(), header);
    assert!(
        (1..=volume.count).contains(&volume.number) && volume.offset < volume.end() && volume.end() <= volume.file_len
    );
    let len = rest.len().min(usize::try_from(volume.head_len).expect("32 bits"));
    let Ok(head) = volume.parse_head(&rest[..len]) else { return };
    let limits = Limits { layout_len: 1 << 20, ..Limits::default() };
    if limits.check(head.root()).is_err() {
        return;
    }
    let stored = usize::try_from(head.root().contents.layout_stored).expect("it is within the limits");
    let Some(layout) = rest.get(len..len + stored) else { return };
    let Ok(chunks) = stored_chunks(&head, layout) else { return };
    if let Ok(own) = volume.chunks(&head, &chunks) {
        assert!(own.start <= own.end && own.end <= chunks.len());
    }
    let size = volume.own_len(&head);
    let Ok(volumes) = Volume::split(&head, &chunks, size) else { return };
    let mut end = front_len(&head);
    for (number, part) in (1..).zip(&volumes) {
        assert_eq!((part.number, part.offset, usize::from(part.count)), (number, end, volumes.len()));
        assert_eq!(Volume::parse(&part.encode()).as_ref(), Ok(part));
        assert!(part.own_len(&head) <= size && part.chunks(&head, &chunks).is_ok());
        end = part.end();
    }
    assert_eq!(end, head.file_len());
}

/// Header and geometry of a recovery file encode to the same bytes, and its codewords have each byte of the body once. The input has no BLAKE3 after
/// either of them.
pub fn recovery(data: &[u8]) {
    let Some((header, fields)) = data.split_at_checked(80) else { return };
    let header = [header, &hash(header)].concat();
    let geometry = [fields, &hash(&[&header, fields].concat())].concat();
    let Ok(recovery) = Recovery::parse(&header, &geometry) else { return };
    assert_eq!(recovery.encode(), Ok((header, geometry)));
    let (geometry, file_len) = (&recovery.geometry, recovery.file_len);
    let codewords = geometry.codewords(file_len);
    if codewords.saturating_mul(wide(geometry.starts.len())) > 1 << 16 {
        return;
    }
    let runs = (0..codewords).flat_map(|codeword| {
        (0..geometry.starts.len()).map(move |column| geometry.run_of(codeword, column, file_len).0)
    });
    let mut runs: Vec<_> = runs.filter(|run| !run.is_empty()).map(|run| (run.start, run.end)).collect();
    runs.sort_unstable();
    assert!(runs.windows(2).all(|pair| pair[0].1 == pair[1].0));
    assert_eq!(runs.first().map(|run| run.0), geometry.starts.first().copied());
    assert_eq!(runs.last().map(|run| run.1), Some(file_len));
}

/// Queries everything that a listing shows.
fn list(difference: &Difference) {
    assert!(!difference.base_refs().is_empty() && !difference.refs().is_empty());
    for edit in difference.edits() {
        assert_eq!(difference.path(edit).is_empty(), edit.parent.is_none());
        assert!(edit.block().all(|below| difference.edit(below).parent.is_some()));
        let file = edit.op.new_file();
        assert!(file.is_none() || difference.file_type(edit).is_some());
        let changed = if let Op::Changed(changed) = edit.op { Some(changed) } else { None };
        let rows = file.map(|file| file.attributes).into_iter().chain(changed.and_then(|changed| changed.attributes));
        for row in rows {
            assert!(row.get(difference.attribute_rows()).is_some());
        }
        let contents = file.map(|file| file.content).into_iter().chain(changed.and_then(|changed| changed.content));
        contents.for_each(|content| list_content(difference, content));
        assert!(edit.op.link().is_none_or(|link| edit.op.link() != difference.edit(link).op.link()));
    }
    for change in difference.times() {
        assert_eq!(difference.new_time(change.from), change.to);
    }
    let Some(ostree) = difference.ostree() else { return };
    ostree.files().iter().for_each(|file| list_content(difference, file.content));
    assert!(ostree.refs().iter().all(|named| wide(ostree.commits().len()) > named.commit.into()));
}

fn list_content(difference: &Difference, content: NewContent) {
    match content {
        NewContent::Symlink(symlink) => assert!(!difference.symlink_target(symlink).is_empty()),
        NewContent::Regular(Reference::Carried(object)) => assert!(object.get(difference.objects()).is_some()),
        NewContent::Regular(Reference::Base(object)) => assert!(object.number() < difference.base_objects()),
        _ => {}
    }
}

/// The input of [`suffix`].
pub fn suffix_input(len: u16, prefix: &[u8], stored: &[u8]) -> Vec<u8> {
    [&len.to_le_bytes()[..], &narrow(prefix.len()).to_le_bytes(), prefix, stored].concat()
}

/// A byte difference that fits the lengths of a chunk and its prefix makes a chunk of that length, or does not decode. Applying it to a prefix of
/// another length does not panic.
pub fn suffix(data: &[u8]) {
    let Some((len, mut stored)) = data.split_first_chunk() else { return };
    let len = u16::from_le_bytes(*len);
    let Some(prefix) = part(&mut stored) else { return };
    let (mut decoder, mut out) = (FrameDecoder::new(), Vec::new());
    let parsed = ByteDifference::parse(Part::Chunk(0), stored, len.into(), wide(prefix.len()), 20, &mut decoder);
    let Ok(suffix) = parsed else { return };
    if suffix.apply(prefix, &mut decoder, &mut out).is_ok() {
        assert_eq!(out.len(), usize::from(len));
    }
    let _ = suffix.apply(&prefix[..prefix.len() / 2], &mut decoder, &mut out);
}

/// A frame whose headers pass the check is one frame of that length for zstd too, and only such frames are decoded.
pub fn frame(data: &[u8]) {
    let Some((&[window, a, b, c], stored)) = data.split_first_chunk() else { return };
    let (window_log, len) = (10 + window % 18, u32::from_le_bytes([a, b, c, 0]).into());
    let checked = check_frame(Part::Chunk(0), stored, len, window_log);
    if checked.is_ok() {
        assert_eq!(zstd_safe::get_frame_content_size(stored).ok().flatten(), Some(len));
        assert_eq!(zstd_safe::find_frame_compressed_size(stored), Ok(stored.len()));
        assert!(frame_window(stored).is_some_and(|window| window <= 1 << window_log));
    }
    let mut out = Vec::new();
    let decoded = FrameDecoder::new().decode(Part::Chunk(0), stored, len, window_log, &mut out);
    assert!(checked.is_ok() || decoded.is_err());
    assert!(decoded.is_err() || wide(out.len()) == len);
}

/// The portions in which a file is read make no difference. The first four bytes are their sizes.
pub fn opener(data: &[u8]) {
    let Some((sizes, input)) = data.split_first_chunk::<4>() else { return };
    let sizes = sizes.map(|size| usize::from(size) + 1);
    let whole = open(input, &[usize::MAX]);
    assert_eq!(open(input, &sizes), whole);
    if input.len() < 4096 {
        assert_eq!(open(input, &[1]), whole);
    }
    let pipe = sealift::Input::pipe("pipe", Box::new(Portions::new(input, &sizes)));
    let piped = read(pipe, Check::Open, None);
    match whole {
        // The end of a pipe is not checked before the chunks are read, and signatures are only checked by `read`.
        Ok(_) | Err(sealift_format::Error::Truncated { .. } | sealift_format::Error::Trailing { .. }) => {}
        Err(error) => assert!(piped.is_err_and(|kind| kind == error.kind() || kind == Kind::Signature)),
    }
}

/// Makes a valid head around the index, layout and chunks of the input, so that the content is reached. Reading it fails with a fault of the content,
/// or succeeds.
pub fn bundle_deep(data: &[u8]) {
    let Some((piece_log2, index, mut layout, _, mut stored)) = parsed_layout(data) else { return };
    let chunks = stored;
    for chunk in &mut layout.chunks {
        let len = usize::try_from(chunk.stored_len).expect("32 bits");
        let Some((bytes, rest)) = stored.split_at_checked(len) else { return };
        chunk.digest = hash(bytes);
        stored = rest;
    }
    let chunks = &chunks[..chunks.len() - stored.len()];
    let Ok(maxima) = maxima(&index, &layout, piece_log2, 27) else { return };
    // Larger inputs are slow, and find nothing new.
    let data: u64 = layout.chunks.iter().map(|chunk| u64::from(chunk.len)).sum();
    if maxima.logical > 1 << 22 || data > 1 << 22 {
        return;
    }
    let (layout_bytes, index_bytes) = (layout.encode().expect("it fits"), index.bytes());
    let (layout_frame, index_frame) = (compress(&layout_bytes), compress(index_bytes));
    let contents = Contents {
        index_digest: verity::digest(index_bytes),
        index_len: wide(index_bytes.len()),
        index_stored: wide(index_frame.len()),
        index_blake3: hash(&index_frame),
        layout_len: wide(layout_bytes.len()),
        layout_stored: wide(layout_frame.len()),
        layout_blake3: hash(&layout_frame),
    };
    let identity = Identity { name: "x".into(), version: 0, created: 0, expires: None, compatible: Vec::new() };
    let has_recipes = !layout.recipes.is_empty();
    let recipes = has_recipes.then(|| RecipeSums::of(&layout.recipes, index.objects()).expect("no sum is that long"));
    // Making them would take too long.
    if recipes.as_ref().is_some_and(|sums| sums.made_bytes.max(sums.encoded_bytes()).max(sums.memory) > 1 << 22) {
        return;
    }
    let root = Root { identity, contents, maxima, annotations: Vec::new(), bases: None, images: Vec::new(), recipes };
    let head = Head::new(root, Vec::<Envelope>::new(), 64).expect("it is short");
    let file = [&head.encode()[..], &layout_frame, &index_frame, chunks].concat();
    let input = |sizes: &[usize]| sealift::Input::pipe("pipe", Box::new(Portions::new(&file, sizes)));
    let stored = read(input(&[usize::MAX]), Check::Verify, None);
    assert!(stored.as_ref().is_ok_and(|opened| *opened.head().encode() == head.encode()), "{stored:?}");
    // If there are several faults, threads may meet a different one first.
    let walked = walk(&file, &[1000], Check::Deep);
    let deep = read(input(&[100]), Check::Deep, None);
    assert_eq!(walked.is_ok(), deep.is_ok());
    for kind in [walked.err(), deep.err()].into_iter().flatten() {
        assert!(matches!(kind, Kind::Chunk | Kind::Object | Kind::Index), "{kind}");
    }
}

/// A signature has one encoding, with no byte more or less, and does not verify for other bytes.
pub fn sshsig(data: &[u8]) {
    let parsed = SshSignature::parse(data);
    if let Ok(signature) = &parsed {
        assert!(signature.verify(data).is_err());
    }
    if parsed.map_or_else(|error| error.unknown().is_some(), |_| true) {
        for other in [&[data, &[0]].concat()[..], &data[..data.len() - 1]] {
            assert!(SshSignature::parse(other).is_err_and(|error| error.unknown().is_none()));
        }
    }
    if let Ok(signature) = SshSignature::from_armor(data) {
        assert!(signature.verify(data).is_err());
    }
}

/// A signature for the kernel has one outermost layer, and does not verify for other bytes. Reading certificates and keys does not panic.
pub fn kernel_signature(data: &[u8]) {
    let certificate = KernelCertificate::from_pem(CERTIFICATE).expect("it is one");
    if check(data).is_ok() {
        assert!(data.len() <= LEN_MAX);
        assert!(check(&[data, &[0]].concat()).is_err());
        assert!(check(&data[..data.len() - 1]).is_err());
    } else {
        assert!(certificate.verify(data, b"").is_err());
    }
    assert!(certificate.verify(data, data).is_err());
    let _ = KernelCertificate::from_pem(data).map(|certificate| certificate.verify(data, data));
    let _ = KernelKey::from_pem(data);
}

/// A comment changes nothing, and a file grants nothing to keys that it does not list.
pub fn allowed_signers(data: &[u8]) {
    let Ok(signers) = AllowedSigners::parse(data) else { return };
    let longer = AllowedSigners::parse(&[data, b"\n# comment\n\n"].concat());
    assert_eq!(longer.as_ref(), Ok(&signers));
    let now = Now::exactly(1_700_000_000);
    for line in signers.granting() {
        let standing = signers.standing(line.key, "test", now);
        assert!(
            standing.is_trusted()
                || !line.principals.matches("test")
                || line.valid_after.is_some()
                || line.valid_before.is_some()
        );
    }
    assert!(!signers.standing(KeyId::from_bytes([0; 32]), "test", now).is_trusted());
}

/// Parsing a list twice gives equal lists, and a list revokes no key that it does not name.
pub fn revocation(data: &[u8]) {
    let Ok(list) = RevocationList::parse(data) else { return };
    assert_eq!(RevocationList::parse(data).as_ref(), Ok(&list));
    assert!(!list.contains_id(KeyId::from_bytes([0; 32])));
}

/// The last line of a profile may lack its line feed.
pub fn order_profile(data: &[u8]) {
    let profile = OrderProfile::parse(data);
    assert_eq!(OrderProfile::parse(&[data, b"\n"].concat()), OrderProfile::parse(&[data, b"\n\n#"].concat()));
    if !data.ends_with(b"\r") {
        assert_eq!(OrderProfile::parse(&[data, b"\n"].concat()), profile);
    }
    if let Ok(profile) = profile {
        let text = profile.to_text();
        let again = OrderProfile::parse(text.as_bytes()).expect("a profile that was written is read");
        assert_eq!((again.entries(), again.to_text()), (profile.entries(), text));
    }
}

/// An object of OSTree encodes to the bytes that it was parsed from.
pub fn ostree_object(data: &[u8]) {
    if let Ok(tree) = DirTree::parse(data) {
        assert_eq!(tree.encode(), data);
    }
    if let Ok(attributes) = dirmeta::parse(data) {
        assert_eq!(dirmeta::encode(&attributes), data);
    }
    if let Ok(attributes) = ostreemeta::parse(data) {
        assert_eq!(ostreemeta::encode(&attributes), data);
    }
    if let Ok(header) = file::parse_header(data) {
        assert_eq!(file::encode_header(&header.attributes, header.target), data);
    }
    if let Ok(file::ArchiveHeader { size, header }) = file::parse_archive_header(data) {
        assert_eq!(file::encode_archive_header(size, &header.attributes, header.target), data);
    }
    if let Ok(commit) = Commit::parse(data) {
        assert_eq!(commit.encode(), data);
    }
    if let Ok(summary) = Summary::parse(data) {
        // Parsing drops parts of it, so values are compared instead of bytes.
        assert_eq!(Summary::parse(&summary.encode()).as_ref(), Ok(&summary));
    }
    if let Ok(dictionary) = Dictionary::parse(data) {
        for (_, value) in dictionary.entries() {
            let _ = (value.text(), value.texts().map(Iterator::count), value.byte_strings());
        }
    }
}

/// What is read of an image lies within it, whatever it holds: the range with the superblock is short, and the blocks and hashes of a tree are there.
pub fn dm_verity(data: &[u8]) {
    let len = wide(data.len());
    let part = |range: std::ops::Range<u64>| {
        let end = |at| usize::try_from(at).expect("it lies in the input");
        data.get(end(range.start)..end(range.end)).expect("it lies in the input")
    };
    let hash_len = |tree: &HashTree| usize::from(tree.superblock().algorithm.digest_len());
    let check = |place: u64, data_len: u64| {
        let superblock = Superblock::parse(part(place..len));
        let Ok(tree) = superblock.and_then(|superblock| HashTree::new(superblock, place, len, data_len)) else {
            return;
        };
        assert!(tree.data_len() <= data_len);
        assert_eq!(tree.hash(part(tree.top().unwrap_or(0..tree.data_len()))).len(), hash_len(&tree));
        for layer in tree.layers() {
            let (blocks, hashes) = (layer.bytes_of(0..layer.blocks), layer.hashes_of(0..layer.blocks));
            if let Some(found) = tree.compare(layer, 0, part(blocks.clone()), part(hashes)) {
                assert!(found.block < layer.blocks && blocks.contains(&found.offset));
                assert!(found.count <= layer.blocks - found.block);
            }
        }
    };
    check(0, len);
    let head = part(0..len.min(HEAD_LEN));
    if let Some(range) = superblock_range(head, len) {
        assert!(range.end - range.start <= 4608);
        if let Some(at) = find_superblock(part(range.clone())) {
            let place = range.start + wide(at);
            check(place, place);
        }
    }
}

/// Whatever is taken apart keeps the promises of its type, which are checked inside; what is read of it is of the stated length or an error.
pub fn container(data: &[u8]) {
    let mut limits = ContainerLimits::default();
    (limits.work, limits.memory, limits.decoded) = (16 << 20, 16 << 20, 4 << 20);
    let Ok(Some(anatomy)) = Anatomy::of(&data, &limits) else { return };
    let blocks = Blocks::new(&data, &anatomy);
    for member in anatomy.members.iter().take(8) {
        let mut buffer = vec![0; usize::try_from(member.len.min(4096)).unwrap_or(0)];
        let _ = Content::new(&blocks, member).read_exact_at(&mut buffer, member.len.saturating_sub(4096));
    }
}
