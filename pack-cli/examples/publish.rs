//! A publisher's build script: packs a tree in the order in which a workload reads it, signs the bundle, and prints the result.
//!
//! ```text
//! publish TREE BUNDLE KEY VERSION [PROFILE]
//! ```
//!
//! A second run on an equal tree with the same `SOURCE_DATE_EPOCH` produces the same bytes.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use sealift::Output;
use sealift::order::OrderProfile;
use sealift::pack::{PackOptions, PackRef, pack};
use sealift::source::{DirectoryOptions, Exclude, MetadataOptions, Source, SourceOptions};
use sealift::trust::sign::{Signer, sign_root};
use sealift::{Identity, Progress};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        [tree, bundle, key, version] => publish(tree, bundle, key, version, None),
        [tree, bundle, key, version, profile] => publish(tree, bundle, key, version, Some(profile)),
        _ => Err("usage: publish TREE BUNDLE KEY VERSION [PROFILE]".into()),
    };
    if let Err(error) = done {
        eprintln!("publish: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn publish(tree: &str, bundle: &str, key: &str, version: &str, profile: Option<&str>) -> Result<(), Box<dyn Error>> {
    let output = Path::new(bundle);
    let created: i64 = std::env::var("SOURCE_DATE_EPOCH")?.parse()?;
    let keys = [Signer::open(Path::new(key), &no_passphrase)?];

    let mut options = PackOptions::new(Identity {
        name: output.file_stem().ok_or("the bundle has no name")?.to_string_lossy().into(),
        version: version.parse()?,
        created,
        expires: None,
        compatible: Vec::new(),
    });
    options.level = 19; // packed once, read by many
    options.order = profile.map(|path| OrderProfile::read(path.as_ref())).transpose()?;

    // Leaves out or normalizes what differs between two machines that build the same tree.
    let source_options = SourceOptions {
        directory: DirectoryOptions { exclude: Some(Exclude::new([".git/", "*~"].into_iter())?), ..Default::default() },
        metadata: MetadataOptions { owner: Some((0, 0)), mtime_max: Some(created), ..Default::default() },
        ..Default::default()
    };
    let source = Source::open_spec(tree.as_ref(), &source_options, options.jobs)?;
    let refs = [PackRef { name: "main", source: &source }];
    let sign = |signed: &[u8]| sign_root(signed, &keys);
    let stats = pack(&refs, &Output::File(output.into()), &options, &sign, &Progress::default())?;

    let digest: String = stats.root.contents.index_digest.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("content {digest}");
    println!("{} files, {} bytes", stats.root.maxima.objects, stats.file_bytes);
    println!("{} of {} paths of the profile found", stats.order.matched, stats.order.paths);
    println!("signed by {}", keys[0].public_key().id());
    Ok(())
}

/// A build script cannot prompt: keys with a passphrase are loaded into ssh-agent, and KEY is the public half.
fn no_passphrase(path: &Path) -> Result<sealift::trust::sign::Zeroizing<String>, sealift::Error> {
    Err(sealift::Error::Usage(format!(
        "{} has a passphrase: load it into ssh-agent, and give the .pub",
        path.display()
    )))
}
