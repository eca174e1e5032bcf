//! The functions that take the most time: reading an index, checking a chunk, hashing, and scanning small files.

use std::fs;
use std::hint::black_box;
use std::path::Path;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use sealift::Output;
use sealift::base::Base;
use sealift::pack::{DeltaFor, PackOptions, PackRef, pack, pack_delta};
use sealift::source::{DirectoryOptions, DirectorySource, Source};
use sealift::trust::{Guard, TrustOptions};
use sealift::{Bundle, Identity, Input, Limits, Progress};
use sealift_format::{Holds, Index, Layout, Opened, Row, verity};
use sealift_verify::content::ChunkDecoder;
use sealift_verify::read_plan::ReadPlan;

const FILES: u64 = 20_000;

/// Returns text that compresses about as well as source code, different for each `seed`.
fn text(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let words = ["static ", "int ", "return ", "struct ", "if (", ") {\n", "}\n", "->", "NULL", ";\n\t"];
    let mut out = Vec::with_capacity(len + 16);
    while out.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = usize::try_from(state >> 60).unwrap_or(0);
        out.extend(
            words.get(word).map_or_else(|| format!("{:x} ", state >> 48), |word| (*word).to_owned()).into_bytes(),
        );
    }
    out.truncate(len);
    out
}

fn make_tree(root: &Path) {
    for number in 0..FILES {
        let directory = root.join(format!("d{:03}", number / 100));
        fs::create_dir_all(&directory).expect("a directory can be made");
        let len = usize::try_from(number * 7919 % 12_000).unwrap_or(0);
        fs::write(directory.join(format!("file{number}.c")), text(number, len)).expect("a file can be written");
    }
}

fn options() -> PackOptions {
    let identity = Identity { name: "bench".into(), version: 1, created: 0, expires: None, compatible: Vec::new() };
    PackOptions { jobs: 1, ..PackOptions::new(identity) }
}

fn listed(tree: &Path) -> Source {
    Source::Directory(DirectorySource::list(tree, &DirectoryOptions::default(), 1).expect("it can be listed"))
}

fn pack_tree(tree: &Path, bundle: &Path) {
    let refs = [PackRef { name: "main", source: &listed(tree) }];
    pack(&refs, &Output::File(bundle.into()), &options(), &|_| Ok(Vec::new()), &Progress::default())
        .expect("it can be packed");
}

fn hot_paths(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (tree, path) = (folder.path().join("tree"), folder.path().join("bench.sealift"));
    make_tree(&tree);
    pack_tree(&tree, &path);
    let mut input = Input::open(&path).expect("it is there");
    let bundle = input.open_bundle(Limits::default()).expect("it is sound");

    index(criterion, &bundle);
    chunk(criterion, &bundle, &mut input);
    delta(criterion, folder.path());
    hashing(criterion);
    scanning(criterion, &tree, &folder.path().join("again.sealift"));
}

fn index(criterion: &mut Criterion, bundle: &Bundle) {
    let mut group = criterion.benchmark_group("index");
    group.throughput(Throughput::Elements(FILES));
    let bytes = bundle.index.bytes().to_vec();
    group.bench_function("parse", |bench| {
        bench.iter_batched(
            || bytes.clone(),
            |bytes| Index::parse(bytes, u64::MAX).expect("it is sound"),
            BatchSize::LargeInput,
        );
    });
    let (layout, piece_log2) = (bundle.layout.encode().expect("it fits"), bundle.head.root().maxima.piece_log2);
    group.bench_function("parse layout", |bench| {
        bench.iter(|| Layout::parse(black_box(&layout), &(&bundle.index).into(), piece_log2).expect("it is sound"));
    });
}

fn chunk(criterion: &mut Criterion, bundle: &Bundle, input: &mut Input) {
    let row = &bundle.layout.chunks[0];
    assert!(matches!(row.holds, Holds::Group(_)), "small files are in groups");
    let plan = ReadPlan::all(bundle.into());
    let mut stored = Vec::new();
    input.read_chunk(&bundle.head, row, &mut stored).expect("it can be read");
    let mut decoder = ChunkDecoder::default();
    let mut group = criterion.benchmark_group("chunk");
    group.throughput(Throughput::Bytes(row.len.into()));
    group.bench_function("check and decode", |bench| {
        bench.iter(|| black_box(decoder.decode(bundle, Row::FIRST, &stored, &[]).expect("it is sound").len()));
    });
    let decoded = decoder.decode(bundle, Row::FIRST, &stored, &[]).expect("it is sound").to_vec();
    group.bench_function("check objects", |bench| {
        bench.iter(|| {
            for content in plan.contents(bundle.into(), Row::FIRST, &decoded) {
                content.expect("it is sound");
            }
        });
    });
}

/// Measures a chunk whose prefix is another version of it.
fn delta(criterion: &mut Criterion, folder: &Path) {
    let old = text(1, 2 << 20);
    let mut new = old.clone();
    new.iter_mut().step_by(5_000).for_each(|byte| *byte ^= 1);
    let (tree, base, path) = (folder.join("version"), folder.join("base.sealift"), folder.join("delta.sealift"));
    fs::create_dir(&tree).expect("a directory can be made");
    fs::write(tree.join("file"), &old).expect("a file can be written");
    pack_tree(&tree, &base);
    fs::write(tree.join("file"), &new).expect("a file can be written");
    let mut input = Input::open(&base).expect("it is there");
    let anyone = TrustOptions { allow_unsigned: true, state: Some(folder.join("state")), ..TrustOptions::default() };
    let guard = Guard::load(&anyone).expect("it can be loaded");
    let opened = Input::open(&base).expect("it is there");
    let base = Base::of_bundle(opened, Limits::default(), &guard).expect("it is sound");
    let refs = [PackRef { name: "main", source: &listed(&tree) }];
    let (target, to) = (DeltaFor::Bases(vec![base]), Output::File(path.clone()));
    pack_delta(&refs, target, &to, &options(), &|_| Ok(Vec::new()), &Progress::default()).expect("it can be packed");

    let base = input.open_bundle(Limits::default()).expect("it is sound");
    let mut input = Input::open(&path).expect("it is there");
    let Opened::Delta(delta) = input.open_any(Limits::default()).expect("it is sound") else { panic!("it has a base") };
    let bundle = delta.complete(&[&base.index]).expect("that is its base");
    let row = &bundle.layout.chunks[0];
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    let ranges = bundle.layout.prefix_of(row).iter();
    let prefix: Vec<u8> =
        ranges.flat_map(|range| &old[place(range.offset)..place(range.offset + range.len)]).copied().collect();
    assert!(!prefix.is_empty(), "the chunk has a prefix");
    let mut stored = Vec::new();
    input.read_chunk(&bundle.head, row, &mut stored).expect("it can be read");
    let mut decoder = ChunkDecoder::default();
    let mut group = criterion.benchmark_group("delta");
    group.throughput(Throughput::Bytes(row.len.into()));
    group.bench_function("check and decode with a prefix", |bench| {
        bench.iter(|| black_box(decoder.decode(&bundle, Row::FIRST, &stored, &prefix).expect("it is sound").len()));
    });
}

fn hashing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hash");
    for len in [1000, 10_000, 1 << 20] {
        let content = text(1, len);
        group.throughput(Throughput::Bytes(u64::try_from(len).unwrap_or(0)));
        group.bench_function(format!("fs-verity digest of {len}"), |bench| {
            bench.iter(|| verity::digest(black_box(&content)));
        });
        group.bench_function(format!("id of {len}"), |bench| bench.iter(|| blake3::hash(black_box(&content))));
    }
}

fn scanning(criterion: &mut Criterion, tree: &Path, bundle: &Path) {
    let mut group = criterion.benchmark_group("small files");
    group.sample_size(10);
    group.throughput(Throughput::Elements(FILES));
    group.bench_function("list", |bench| {
        bench.iter(|| DirectorySource::list(tree, &DirectoryOptions::default(), 1).expect("it can be listed"));
    });
    group.bench_function("list and pack", |bench| bench.iter(|| pack_tree(tree, bundle)));
}

criterion_group!(benches, hot_paths);
criterion_main!(benches);
