//! Thin thread.
use sealift::pack::*;
use sealift::source::*;
use sealift::*;
use sealift_format::*;
use std::path::PathBuf;
use std::time::Instant;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let t = Instant::now();
    let progress = Progress::default();
    let jobs = std::env::var("JOBS").map_or(2, |j| j.parse().unwrap_or(2));
    let r: Result<(), sealift::Error> = (|| {
        match a[1].as_str() {
            "pack" => {
                let s = Source::Directory(DirectorySource::list(
                    &PathBuf::from(&a[2]),
                    &DirectoryOptions::default(),
                    jobs,
                )?);
                eprintln!("list {:?}", t.elapsed());
                let o = PackOptions {
                    identity: Identity { name: "x".into(), version: 1, created: 1, expires: None, compatible: vec![] },
                    annotations: vec![],
                    order: None,
                    level: 3,
                    chunk_len: std::env::var("CHUNK").map_or(2 << 20, |j| j.parse().unwrap_or(2 << 20)),
                    signature_room: 1024,
                    jobs,
                };
                let st = pack(
                    &[PackRef { name: "main", source: &s }],
                    &Output::File(PathBuf::from(&a[3])),
                    &o,
                    &|_| Ok(vec![]),
                    &progress,
                )?;
                eprintln!("{st:#?} {:?}", t.elapsed());
            }
            "unpack" => {
                let mut i = Input::open(&PathBuf::from(&a[2]))?;
                let o = unpack::UnpackOptions {
                    reference: None,
                    prefix: vec![],
                    durability: unpack::Durability::End,
                    hardlink_duplicates: false,
                    dry_run: false,
                    jobs,
                };
                let st = unpack::unpack(&mut i, &PathBuf::from(&a[3]), &o, Limits::default(), |_| Ok(()), &progress)?;
                eprintln!("{st:#?} {:?}", t.elapsed());
            }
            _ => {}
        }
        Ok(())
    })();
    if let Err(e) = r {
        eprintln!("error: {e}");
        std::process::exit(1);
    }
}
