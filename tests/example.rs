//! Compares spec/example.md with the vector that it explains.

use sealift_format::Opened;
use sealift_tests::reader::open;
use sealift_tests::vector::{Vector, folder, load};

/// Returns the bytes of all lines `offset  bytes  meaning` in code blocks, and checks that each begins at its offset.
fn bytes_of(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut is_dump = false;
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            is_dump = language == "dump";
            continue;
        }
        if !is_dump {
            continue;
        }
        let (offset, rest) = line.split_once("  ").unwrap_or_else(|| panic!("no offset in {line:?}"));
        assert_eq!(usize::from_str_radix(offset, 16), Ok(bytes.len()), "{line}");
        let (row, _) = rest.split_once("  ").unwrap_or((rest, ""));
        bytes.extend(row.split(' ').map(|byte| {
            assert_eq!(byte.len(), 2, "{line}");
            u8::from_str_radix(byte, 16).unwrap_or_else(|error| panic!("{line}: {error}"))
        }));
    }
    bytes
}

fn example() -> (String, Vector) {
    let text = std::fs::read_to_string(folder().join("../example.md")).expect("the example is there");
    let vector = load().into_iter().find(|vector| vector.name == "good-example").expect("the vector is there");
    (text, vector)
}

#[test]
fn the_dump_has_every_byte_of_the_vector() {
    let (text, vector) = example();
    assert_eq!(bytes_of(&text), vector.bytes);
}

/// Layout and index are in the file in their decoded form, after the headers of a frame and a block.
#[test]
fn the_dump_shows_layout_and_index_decoded() {
    const HEADERS: usize = 4 + 1 + 4 + 3;
    let (text, vector) = example();
    let Ok(Opened::Whole(bundle)) = open(&vector.bytes, &[usize::MAX]) else { panic!("it is a whole bundle") };
    let layout_at = usize::try_from(bundle.head.head_len()).expect("it is small") + HEADERS;
    let layout = bundle.layout.encode().expect("it was read");
    let index_at = layout_at + layout.len() + HEADERS;
    for (at, decoded) in [(layout_at, &layout[..]), (index_at, bundle.index.bytes())] {
        assert_eq!(&vector.bytes[at..at + decoded.len()], decoded);
        let row = decoded[..2].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
        let line = format!("\n{at:04x}  {row}  ");
        assert!(text.contains(&line), "no line begins with {line:?}");
    }
}
