// Set-up for the examples of the documentation: a folder with `tree`, its bundle `os.sealift`, the key `release` that signed it, and the file
// `allowed_signers` that names this key.
fn signed_bundle() -> Result<tempfile::TempDir, Box<dyn std::error::Error>> {
    use sealift::Output;
    use sealift::pack::{PackOptions, PackRef, pack};
    use sealift::source::Source;
    use sealift::trust::sign::{Signer, generate_key, sign_root};

    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(at("tree/etc"))?;
    std::fs::write(at("tree/etc/os-release"), "ID=example\n")?;
    let key = generate_key(&at("release"), None, "release")?.to_openssh();
    std::fs::write(at("allowed_signers"), format!("os namespaces=\"sealift\" {key}\n"))?;
    let keys = [Signer::open(&at("release"), &|_| unreachable!("the key has no passphrase"))?];
    let source = Source::open_spec(at("tree").as_os_str(), &Default::default(), 1)?;
    let refs = [PackRef { name: "main", source: &source }];
    let options = PackOptions::new(sealift::Identity {
        name: "os".into(),
        version: 7,
        created: 1_700_000_000,
        expires: None,
        compatible: Vec::new(),
    });
    pack(&refs, &Output::File(at("os.sealift")), &options, &|signed| sign_root(signed, &keys), &Default::default())?;
    Ok(folder)
}
