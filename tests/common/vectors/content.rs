//! Chunks, objects and zstd frames (core 8).

use super::layout::{large, sparse};
use super::*;
use crate::frame::{RawFrame, frame, frame_with_checksum};
use crate::tree::paint;
use sealift_format::num;

pub(super) fn vectors() -> Vec<Vector> {
    [contents(), frames()].into_iter().flatten().collect()
}

fn contents() -> Vec<Vector> {
    vec![
        reject("chunk-digest", "chunk", "the last chunk's last byte is flipped", |b| {
            b.edits.file = edit(|file: &mut Vec<u8>| *file.last_mut().expect("it is not empty") ^= 1);
        })
        .check(Check::Verify),
        reject("object-id", "object", "the group holds `One`, not `one`", |b| b.store(0, frame(b"One\ntwo\n"))),
        reject("object-order", "object", "the group holds its objects in another order", |b| {
            b.store(0, frame(b"two\none\n"));
        }),
        reject_from(
            sparse(),
            "object-moved-hole",
            "object",
            "the data are right, and the hole lies a block further on",
            |b| b.layout.holes[0].1[0].0 += 1,
        ),
        reject("object-id-empty", "object", "an object of no bytes has another id", |b| {
            *b = Bundle::new(&[("main", dir([("a", file(""))]))], Packing::default());
            b.index.objects[0].1[0] ^= 1;
        }),
        reject("object-id-hole", "object", "an object that is one hole has another id", |b| {
            let packing = Packing { piece_log2: 20, ..Packing::default() };
            *b = Bundle::new(&[("main", dir([("a", file(vec![0; 16 * 4096]))]))], packing);
            b.index.objects[0].1[0] ^= 1;
        }),
        reject_from(large(), "piece-content", "object", "the second chunk of object 2 holds other bytes", |b| {
            b.store(4, frame(&paint(9, 4096)));
        }),
        reject_from(
            large(),
            "piece-content-hole",
            "object",
            "the chaining value of a piece without data is another",
            |b| {
                // Everything above it is consistent: the object's id is computed from the wrong value.
                b.layout.pieces[5].1[0] ^= 1;
                let values: Vec<_> = b.layout.pieces[..18].iter().map(|piece| piece.1).collect();
                b.index.objects[1].1 = sealift_format::pieces::object_id(&values).expect("several pieces");
            },
        ),
    ]
}

/// Returns a bundle of one file of bytes `a`, in a frame with these blocks: the type of each, and how many bytes it becomes.
fn blocks(blocks: &[(u8, u32)], window_log: Option<u8>) -> Bundle {
    let content: Vec<u8> = blocks.iter().flat_map(|(_, len)| std::iter::repeat_n(b'a', num::at(*len))).collect();
    let packing = Packing { piece_log2: 20, ..Packing::default() };
    let mut bundle = Bundle::new(&[("main", dir([("a", file(content.clone()))]))], packing);
    let mut frame = RawFrame::of(&content);
    let stored = |kind, len| vec![b'a'; if kind == 1 { 1 } else { num::at(len) }];
    frame.blocks = blocks.iter().map(|(kind, len)| (*kind, *len, stored(*kind, *len))).collect();
    let frame = window_log.map_or_else(|| frame.clone(), |log| frame.clone().with_window(log));
    bundle.store(0, frame.encode());
    bundle
}

fn frames() -> Vec<Vector> {
    /// Replaces the only chunk with a frame built by hand.
    fn raw(change: fn(&mut RawFrame)) -> impl FnOnce(&mut Bundle) {
        move |b| {
            let mut frame = RawFrame::of(b"one\ntwo\n");
            change(&mut frame);
            b.store(0, frame.encode());
        }
    }
    let reject = |name, comment, edit: Box<dyn FnOnce(&mut Bundle)>| reject(name, "chunk", comment, edit);
    vec![
        reject(
            "frame-content-size",
            "the frame states 9 bytes and holds 9, and 8 are declared",
            Box::new(|b| {
                b.store(0, RawFrame::of(b"one\ntwo\n\n").encode());
            }),
        ),
        reject(
            "frame-no-content-size",
            "the frame does not state its content size",
            Box::new(raw(|f| (f.descriptor, f.fields) = (0, vec![0]))),
        ),
        reject(
            "frame-window",
            "the frame has a window of 2 KiB, and the root says 1 KiB",
            Box::new(raw(|f| (f.descriptor, f.fields) = (0b1000_0000, vec![1 << 3, 8, 0, 0, 0]))),
        ),
        reject(
            "frame-checksum",
            "the frame has a checksum, which is right",
            Box::new(|b| {
                b.store(0, frame_with_checksum(b"one\ntwo\n"));
            }),
        ),
        reject(
            "frame-dictionary",
            "the frame names a dictionary",
            Box::new(raw(|f| {
                f.descriptor |= 1;
                f.fields.insert(0, 7);
            })),
        ),
        reject("frame-reserved-bit", "the frame's reserved bit is set", Box::new(raw(|f| f.descriptor |= 8))),
        reject("frame-unused-bit", "the frame's unused bit is set", Box::new(raw(|f| f.descriptor |= 16))),
        reject("frame-two", "an empty frame follows", Box::new(raw(|f| f.tail = RawFrame::of(b"").encode()))),
        reject(
            "frame-skippable",
            "a skippable frame stands before the frame",
            Box::new(|b| {
                let skippable = [0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 0];
                b.store(0, [&skippable[..], &frame(b"one\ntwo\n")].concat());
            }),
        ),
        reject(
            "frame-skippable-alone",
            "a skippable frame of as many bytes as are declared, which look like blocks",
            Box::new(|b| {
                *b = Bundle::new(&[("main", dir([("a", file([b'a'; 32]))]))], Packing::default());
                let mut stored = [0x50, 0x2a, 0x4d, 0x18, 32, 0, 0, 0].to_vec();
                stored.extend([[2, 0, 0, b'a']; 7].concat());
                stored.extend([3, 0, 0, b'a']);
                b.store(0, stored);
            }),
        ),
        reject(
            "frame-cut",
            "the frame's last byte is missing",
            Box::new(|b| {
                let mut cut = frame(b"one\ntwo\n");
                cut.pop();
                b.store(0, cut);
            }),
        ),
        reject("frame-tail", "a zero byte follows the frame", Box::new(raw(|f| f.tail = vec![0]))),
        reject(
            "frame-magic",
            "the chunk holds the bytes as they are",
            Box::new(|b| b.store(0, b"one\ntwo\n".to_vec())),
        ),
        reject("frame-block-type", "a block of the reserved type", Box::new(raw(|f| f.blocks[0].0 = 3))),
        vector(
            "frame-block-long",
            "chunk",
            "a block of 131,073 times one byte",
            blocks(&[(1, (1 << 17) + 1)], None).encode(),
        ),
        vector(
            "frame-block-window",
            "chunk",
            "a block of 1025 bytes, with a window of 1 KiB",
            blocks(&[(0, 1025)], Some(10)).encode(),
        ),
        accept(
            "good-blocks",
            "a block of 131,072 times one byte, one of no bytes, and one of a byte",
            blocks(&[(1, 1 << 17), (0, 0), (0, 1)], None),
        ),
        reject(
            "frame-short",
            "the blocks hold 7 bytes, and 8 are stated",
            Box::new(raw(|f| f.blocks = vec![(0, 7, b"one\ntwo".to_vec())])),
        ),
        reject(
            "frame-long",
            "the blocks hold 9 bytes, and 8 are stated",
            Box::new(raw(|f| f.blocks.push((1, 1, b"\n".to_vec())))),
        ),
        reject(
            "frame-corrupt",
            "a compressed block of nonsense",
            Box::new(raw(|f| f.blocks = vec![(2, 8, vec![0xff; 8])])),
        ),
        reject(
            "frame-weights",
            "the weights of a Huffman tree are of one symbol, so that no bits are read for them",
            Box::new(raw(|f| {
                // 8 literals in 6 bytes: a tree whose first symbol has all 32 places, and a stream; then no sequences.
                let block = vec![0x82, 0x80, 0x01, 4, 0xf0, 0x03, 0, 0x80, 0x80, 0];
                *f = f.clone().with_window(10);
                f.blocks = vec![(2, 10, block)];
            })),
        ),
        super::reject("frame-layout", "layout", "the layout's frame says that it has a checksum", |b| {
            b.edits.layout_frame = edit(|frame: &mut Vec<u8>| frame[4] |= 4);
        }),
        super::reject("frame-index", "index", "a byte follows the index's frame", |b| {
            b.edits.index_frame = edit(|frame: &mut Vec<u8>| frame.push(0));
        }),
    ]
}
