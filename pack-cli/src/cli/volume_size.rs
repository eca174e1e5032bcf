//! The size of a medium.

use super::human;

/// What a file system for one file takes of a disc: `xorriso` makes one of less than 1 MiB.
const FILE_SYSTEM: u64 = 4 << 20;
/// Bytes of a sector of an optical disc.
const SECTOR: u64 = 2048;

/// The media that have names, and how long a file on them may be.
const MEDIA: [(&str, u64); 4] = [
    // 700 MiB, as is printed on a CD-R of 80 minutes, which has 360,000 sectors (ECMA-394).
    ("cd", (700 << 20) - FILE_SYSTEM),
    // DVD+R, the smaller of DVD+R (ECMA-349: 2,295,104 sectors) and DVD-R (ECMA-359: 2,298,496).
    ("dvd", 2_295_104 * SECTOR - FILE_SYSTEM),
    // BD-R and BD-RE of 25 GB have 12,219,392 sectors, of which this many are left if they are formatted with the largest spare area that
    // xorriso(1), "-list_formats", offers.
    ("bd", 11_826_176 * SECTOR - FILE_SYSTEM),
    // The longest file in FAT32: its directory entries have 32 bits for the length (Microsoft, FAT specification, section 6).
    ("fat32", (4 << 30) - 1),
];

/// Parses the size of a volume: the name of a medium, or a size.
pub(crate) fn parse_volume_size(text: &str) -> Result<u64, String> {
    let named = MEDIA.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    let is_word = text.starts_with(|first: char| !first.is_ascii_digit());
    match named {
        Some((_, size)) => Ok(*size),
        None if is_word => Err("write cd, dvd, bd or fat32, or a size such as 4GiB".into()),
        None => human::parse_size(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_have_the_size_of_their_smallest_kind() {
        assert_eq!(parse_volume_size("dvd"), Ok(4_700_372_992 - (4 << 20)));
        assert_eq!(parse_volume_size("FAT32"), Ok(u64::from(u32::MAX)));
        assert_eq!(parse_volume_size("4GiB"), Ok(4 << 30));
        assert!(parse_volume_size("usb").is_err_and(|why| why.contains("dvd")));
        assert!(parse_volume_size("4GB").is_err_and(|why| why.contains("1MiB")));
    }
}
