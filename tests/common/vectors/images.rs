//! The composefs images of the trees (images 2).

use super::*;
use crate::bundle::{Image, encode_images};
use crate::bytes::Section;

use super::delta::{accept_delta, delta};

pub(super) fn vectors() -> Vec<Vector> {
    [good(), form()].into_iter().flatten().collect()
}

/// The images of [`two_refs`](good::two_refs) with SHA-256, printed by `mkcomposefs --print-digest-only` for the unpacked trees, all but the
/// first with `--min-version=1`.
const DEBUG_V0: &str = "90ecbada3d56472e0ecbceaa615c0fdaa5c207730a3ef017aadbb964efacf912";
const DEBUG_V1: &str = "85379edcbbde17ba6b96cdde6b63a9ff06f1f749bb68a29f4213c5b931ac6a43";
const DEBUG_V1_SHA512: &str = "7942ae049fbfa1129e5fb886db140f54c547c0cb3f02ee572cc942cf5bdab6f33bb7ff3bea8326547bb29df1a712841fdc3cd1490bec2ce5501ade61aeca5716";
const MAIN_V1: &str = "a269317eff2b1d2da7535b6b55b4dd450aafc4f785788b096ce1e7852650fdfc";

fn image(reference: u16, version: u8, algorithm: u8, digest: &str) -> Image {
    let digits = digest.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
    let digest = digits.map(|pair| u8::from_str_radix(pair, 16).expect("digits")).collect();
    Image { reference, version, algorithm, digest }
}

fn stated() -> Bundle {
    let mut bundle = good::two_refs();
    bundle.images = vec![
        image(0, 0, 1, DEBUG_V0),
        image(0, 1, 1, DEBUG_V1),
        image(0, 1, 2, DEBUG_V1_SHA512),
        image(1, 1, 1, MAIN_V1),
    ];
    bundle
}

fn good() -> Vec<Vector> {
    let mut relative = delta();
    relative.images = vec![Image { reference: 0, version: 1, algorithm: 1, digest: vec![7; 32] }];
    vec![
        accept("good-images", "images of two refs, of both forms, with both hashes", stated()),
        accept_delta("good-delta-images", "an image, which nobody makes", relative, &["good-base"])
            .needs("core delta images"),
    ]
}

/// Returns a bundle with one fault in an image.
fn reject(name: &str, kind: &str, comment: &str, change: impl FnOnce(&mut Vec<Image>)) -> Vector {
    reject_from(stated(), name, kind, comment, |b| change(&mut b.images))
}

/// Returns a bundle with one fault in the section's bytes.
fn reject_bytes(name: &str, comment: &str, change: fn(&mut Vec<u8>)) -> Vector {
    reject_from(stated(), name, "header", comment, |b| {
        b.edits.root = edit(move |s: &mut Vec<Section>| change(&mut s[3].payload));
    })
}

fn form() -> Vec<Vector> {
    vec![
        reject_bytes("images-none", "a section of no images", |payload| *payload = encode_images(&[])),
        reject("images-ref", "header", "an image of a third ref, of two", |images| images[3].reference = 2),
        reject("images-version", "unsupported", "version 2", |images| images[3].version = 2),
        reject("images-algorithm", "unsupported", "algorithm 3", |images| images[3].algorithm = 3),
        reject("images-digest", "header", "the last digest has 31 bytes", |images| images[3].digest.truncate(31)),
        reject("images-order", "header", "version 1 of a ref stands before version 0", |images| images.swap(0, 1)),
        reject("images-twice", "header", "two images of one ref, version and algorithm", |images| {
            images[1].version = 0;
        }),
        reject_bytes("images-left", "a byte follows the last image", |payload| payload.push(0)),
    ]
}
