//! Compressed files.

use sealift_container::Kind;
use sealift_desk::{Desk, noise};

use crate::checked::check;
use crate::given::{made, text};

#[test]
fn compressed_files() {
    let desk = Desk::new();
    let content = [text(900_000), noise(7, 100_000), vec![0; 5 << 20], text(4 << 20)].concat();
    desk.write("plain", &content);
    desk.write("second", text(1000));
    let both = [&content[..], &text(1000)].concat();
    for (compressor, kind) in [
        ("gzip -9", Kind::Gzip),
        ("gzip -1n", Kind::Gzip),
        ("xz -1", Kind::Xz),
        ("xz -0 -T0 --block-size=1MiB --check=sha256", Kind::Xz),
        ("xz -0 --check=none --x86 --lzma2=preset=0", Kind::Xz),
        ("zstd -3 --single-thread", Kind::Zstd),
        ("zstd -1 --no-check --no-content-size", Kind::Zstd),
        ("lz4", Kind::Lz4),
        ("lz4 -BD --content-size -9", Kind::Lz4),
        ("lz4 -l", Kind::Lz4),
        ("bzip2 -1", Kind::Bzip2),
    ] {
        // As a file that is renamed, as the output of a pipe, and with a second stream behind it.
        if !made(&desk, &format!("{compressor} -c plain > img")) {
            continue;
        }
        let anatomy = check(&desk.path("img"), kind, &[(String::new(), content.clone())].into());
        assert_eq!(anatomy.blocks.len(), 1, "{compressor}");
        made(&desk, &format!("{compressor} < second > more; cat img more > two"));
        let anatomy = check(&desk.path("two"), kind, &[(String::new(), both.clone())].into());
        assert_eq!(anatomy.blocks.len(), 2, "{compressor}");
        made(&desk, "cat img > rest; head -c 1000 /dev/zero >> rest; echo behind >> rest");
        let anatomy = check(&desk.path("rest"), kind, &[(String::new(), content.clone())].into());
        assert_eq!(anatomy.blocks.len(), 1, "{compressor}");
    }
    for empty in ["gzip", "xz", "zstd", "lz4", "bzip2"] {
        made(&desk, &format!("{empty} < /dev/null > img"));
        let kind = Kind::of(&desk.read("img")).unwrap();
        check(&desk.path("img"), kind, &[(String::new(), Vec::new())].into());
    }
}
