//! The UUID and label of a partition: from its disk's partition table, since the kernel tells them only since version 6.14 (UUID), and udev need not
//! run.
//!
//! GPT: UEFI specification 2.10, 5.3. An MBR has a signature of the whole disk, of which the kernel and util-linux make a UUID with the partition's
//! number.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::Dev;

use crate::fs::block_device::folder_of;
use crate::fs::mount_list::parse_device;

/// What tells a partition from others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "it has nothing else")]
pub struct Partition {
    /// The UUID in lower case; `None` for what is no partition.
    pub uuid: Option<String>,
    /// The label; `None` if it has none.
    pub label: Option<String>,
}

/// The largest sector; the header of a GPT is in the second one.
const SECTOR_LENS: [u64; 2] = [512, 4096];
const ENTRY_LEN: usize = 128;

impl Partition {
    /// Returns what is known of a block device; nothing if it is no partition.
    pub(super) fn of(device: Dev) -> Self {
        Self::read(device).unwrap_or_default()
    }

    /// Returns the device of the partition with this UUID, whatever it is called now; `None` if there is none, or if several have it, as after a disk
    /// was copied. `known` is how it was called before.
    pub(crate) fn find(uuid: &str, known: &Path) -> Option<PathBuf> {
        let has_it = |device: Dev| Self::of(device).uuid.as_deref() == Some(uuid);
        if known.metadata().is_ok_and(|metadata| has_it(metadata.rdev())) {
            return Some(known.to_owned());
        }
        let listed = std::fs::read_dir("/sys/class/block").ok()?.flatten().map(|entry| entry.path());
        let mut found = listed.filter(|folder| folder.join("partition").exists()).filter_map(|folder| {
            let device = parse_device(std::fs::read_to_string(folder.join("dev")).ok()?.trim())?;
            has_it(device).then(|| node_of(&folder)).flatten()
        });
        found.next().filter(|_| found.next().is_none())
    }

    fn read(device: Dev) -> Option<Self> {
        let folder = folder_of(device).canonicalize().ok()?;
        let number = std::fs::read_to_string(folder.join("partition")).ok()?.trim().parse().ok()?;
        let disk = File::open(node_of(folder.parent()?)?).ok()?;
        let read = |at: u64, len: usize| {
            let mut bytes = vec![0; len];
            disk.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
        };
        of_gpt(number, &read).or_else(|| of_mbr(number, &read))
    }
}

/// Returns the device about which the kernel tells in a folder.
fn node_of(folder: &Path) -> Option<PathBuf> {
    let told = std::fs::read_to_string(folder.join("uevent")).ok()?;
    Some(Path::new("/dev").join(told.lines().find_map(|line| line.strip_prefix("DEVNAME="))?))
}

type Read<'a> = dyn Fn(u64, usize) -> Option<Vec<u8>> + 'a;

/// Returns what a GPT says of a partition, which counts from 1.
fn of_gpt(number: u32, read: &Read<'_>) -> Option<Partition> {
    let (sector, header) = SECTOR_LENS.into_iter().find_map(|sector| {
        let header = read(sector, 92)?;
        header.starts_with(b"EFI PART").then_some((sector, header))
    })?;
    let entries_at = u64::from_le_bytes(header[72..80].try_into().ok()?).checked_mul(sector)?;
    let [count, entry_len] = [80, 84].map(|at| u32::from_le_bytes([0, 1, 2, 3].map(|byte| header[at + byte])));
    if number == 0 || number > count || entry_len < 128 {
        return None;
    }
    let at = u64::from(number - 1).checked_mul(entry_len.into())?.checked_add(entries_at)?;
    let entry = read(at, ENTRY_LEN)?;
    let units = entry[56..128].chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
    let label: String = char::decode_utf16(units.take_while(|unit| *unit != 0))
        .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    Some(Partition { uuid: Some(uuid(&entry[16..32])), label: Some(label).filter(|label| !label.is_empty()) })
}

/// Formats a GUID, of which the first three fields are little-endian.
fn uuid(bytes: &[u8]) -> String {
    const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let mut text = String::new();
    for (place, at) in ORDER.into_iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{:02x}", bytes[at]));
    }
    text
}

/// Returns what an MBR says of a partition.
fn of_mbr(number: u32, read: &Read<'_>) -> Option<Partition> {
    let sector = read(0, 512)?;
    let signature = u32::from_le_bytes(sector[440..444].try_into().ok()?);
    let is_mbr = sector[510..] == [0x55, 0xaa] && signature != 0;
    is_mbr.then(|| Partition { uuid: Some(format!("{signature:08x}-{number:02x}")), label: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(disk: &[u8]) -> impl Fn(u64, usize) -> Option<Vec<u8>> + '_ {
        |at, len| disk.get(usize::try_from(at).ok()?..)?.get(..len).map(<[u8]>::to_vec)
    }

    #[test]
    fn a_gpt_names_its_partitions() {
        for sector in [512, 4096] {
            let mut disk = vec![0; 4 * sector];
            disk[sector..sector + 8].copy_from_slice(b"EFI PART");
            disk[sector + 72] = 2;
            disk[sector + 80] = 4;
            disk[sector + 84] = 128;
            let entry = 2 * sector + 128;
            for (at, byte) in (0x10..).zip(0..16) {
                disk[entry + at] = byte;
            }
            for (at, byte) in "rootfs-b".bytes().enumerate() {
                disk[entry + 56 + 2 * at] = byte;
            }
            let found = of_gpt(2, &reading(&disk)).expect("it is there");
            assert_eq!(found.uuid.as_deref(), Some("03020100-0504-0706-0809-0a0b0c0d0e0f"));
            assert_eq!(found.label.as_deref(), Some("rootfs-b"));
            assert_eq!(of_gpt(1, &reading(&disk)).and_then(|found| found.label), None);
            assert_eq!((of_gpt(0, &reading(&disk)), of_gpt(5, &reading(&disk))), (None, None));
            disk[sector + 79] = 0xff;
            assert_eq!(of_gpt(2, &reading(&disk)), None, "entries beyond the end");
        }
    }

    #[test]
    fn an_mbr_has_one_signature_for_all() {
        let mut disk = vec![0; 512];
        assert_eq!(of_mbr(1, &reading(&disk)), None);
        disk[440..444].copy_from_slice(&0x1234_abcd_u32.to_le_bytes());
        disk[510..].copy_from_slice(&[0x55, 0xaa]);
        assert_eq!(of_mbr(2, &reading(&disk)).and_then(|found| found.uuid).as_deref(), Some("1234abcd-02"));
        assert_eq!(of_mbr(2, &reading(&disk[..500])), None);
    }
}
