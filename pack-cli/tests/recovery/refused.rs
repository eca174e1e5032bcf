//! Recovery that cannot help, or that lies.

use std::fs::File;
use std::iter::once;

use sealift::Head;
use sealift::recovery::{Geometry, Recovery};
use sealift_desk::told;
use sealift_format::num::{size, wide};

use super::{body, damage, protected};

#[test]
fn more_damage_than_recovery_is_an_error_and_nothing_is_written() {
    let desk = protected(5, &["r"]);
    let body = body(&desk);
    damage(&desk, once(body.start + 100_000..body.start + 100_000 + body.len() / 10));
    let said = desk.refused("repair bad.sealift --recovery r -o repaired.sealift", 1, "shards of a codeword are lost");
    assert!(!desk.path("repaired.sealift").exists(), "{said}");
    assert!(desk.names("").iter().all(|name| !name.contains("partial")), "{said}");
    let json = desk.refused("repair bad.sealift --recovery r -o repaired.sealift --json", 1, "");
    assert!(json.contains(r#""kind":"unrepairable""#), "{json}");
}

/// Its checksums agree with its parity, but it is of other bytes.
#[test]
fn parity_that_lies_is_found() {
    let desk = protected(10, &["r"]);
    let body = body(&desk);
    damage(&desk, once(body.start + 100_000..body.start + 103_000));
    let mut bytes = desk.read("r");
    let front = 112 + body.start;
    let parity = bytes[front + 8..front + 12].try_into().map(u32::from_le_bytes).unwrap();
    let records = (front
        + 20
        + 8 * usize::try_from(u32::from_le_bytes(bytes[front + 16..front + 20].try_into().unwrap())).unwrap()
        + 32)
        .next_multiple_of(2048);
    let checksums = records + 2048 * usize::try_from(parity).unwrap();
    for shard in 0..usize::try_from(parity).unwrap() {
        bytes[records + shard * 2048] ^= 1;
        let mut crc = libdeflater::Crc::new();
        crc.update(&bytes[records + shard * 2048..records + (shard + 1) * 2048]);
        bytes[checksums + 4 * shard..checksums + 4 * shard + 4].copy_from_slice(&crc.sum().to_le_bytes());
    }
    let run = u32::from_le_bytes(bytes[front + 4..front + 8].try_into().unwrap());
    let columns = u32::from_le_bytes(bytes[front + 16..front + 20].try_into().unwrap());
    let len = 4 * usize::try_from(parity + run * columns).unwrap();
    let mut crc = libdeflater::Crc::new();
    crc.update(&bytes[checksums..checksums + len]);
    bytes[checksums + len..checksums + len + 4].copy_from_slice(&crc.sum().to_le_bytes());
    desk.write("lie", bytes);
    let said =
        desk.refused("repair bad.sealift --recovery lie -o repaired.sealift", 1, "does not make the bundle again");
    assert!(said.contains("nothing was written") && !desk.path("repaired.sealift").exists(), "{said}");
}

#[test]
fn recovery_of_another_bundle_is_refused() {
    let desk = protected(5, &["r"]);
    desk.write("tree/0", "other");
    desk.good("pack tree -o bad.sealift --name os --bundle-version 8 --key release");
    desk.refused("repair bad.sealift --recovery r -o repaired.sealift", 2, "is another bundle than that of r");
    desk.refused("repair good.sealift --recovery good.sealift -o repaired.sealift", 2, "magic bytes of a volume");
    desk.good("recovery bad.sealift -o other");
    let said = desk.good("repair good.sealift --recovery r --recovery other -o repaired.sealift");
    assert!(said.contains("did without other: "), "{said}");
    desk.refused("repair good.sealift --recovery r -o repaired.sealift", 2, "exists");
}

#[test]
fn recovery_is_made_only_of_a_sound_bundle() {
    let desk = protected(5, &["r"]);
    let body = body(&desk);
    damage(&desk, once(body.end - 1..body.end));
    desk.refused("recovery bad.sealift -o new", 1, "chunk");
    assert!(!desk.path("new").exists());
    desk.refused("recovery good.sealift -o r", 2, "exists");
    desk.refused("recovery good.sealift -o new --percent 0", 2, "0");
}

/// A sparse recovery volume that claims a bundle of 512 GiB, with a long column and short ones, takes no memory for what it claims.
#[test]
fn what_a_sparse_recovery_volume_claims_is_refused_by_name() {
    let desk = protected(5, &["r"]);
    let bytes = desk.read("good.sealift");
    let (head, rest) = Head::parse_first(&bytes).unwrap();
    let mut root = head.root().clone();
    root.maxima.chunks_stored = 1 << 39;
    let layout = &rest[..size(root.contents.layout_stored)];
    let head = Head::new(root, Vec::new(), head.area_len()).unwrap();
    let front = [&head.encode()[..], layout].concat();
    let starts = once(wide(front.len())).chain((1..=10).rev().map(|before| head.file_len() - before)).collect();
    let geometry = Geometry { shard_len: 64, run: 1, parity: 1, pad: 0, starts };
    let lie = Recovery::all(&head, 1, &geometry).remove(0);
    let (header, geometry) = lie.encode().unwrap();
    desk.write("lie.sealift-recovery", [header, front, geometry].concat());
    File::options().write(true).open(desk.path("lie.sealift-recovery")).unwrap().set_len(lie.own_len()).unwrap();
    let (status, said) = told(&mut desk.shell("ulimit -v 2000000; sealift repair lie.sealift-recovery -o new"));
    assert!(status == Some(2) && said.contains("the memory for repairing volumes"), "{status:?} {said}");
    assert!(!desk.path("new").exists());
}
