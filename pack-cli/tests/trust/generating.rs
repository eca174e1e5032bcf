//! `key generate`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use sealift::trust::SignError;
use sealift::trust::sign::{Signer, Zeroizing, generate_key};
use sealift::{Error, FileFault, trust::sign::AskPassphrase};

use crate::keyring::{Keyring, no_passphrase};

#[test]
fn ssh_keygen_reads_a_new_key() {
    let desk = Keyring::new();
    let key = generate_key(&desk.path("key"), None, "me@desk").expect("a key");
    assert_eq!(desk.public_key("key"), key);
    let public = fs::read_to_string(desk.path("key.pub")).expect("a file");
    assert!(public.starts_with("ssh-ed25519 ") && public.ends_with(" me@desk\n"));
    assert_eq!(fs::metadata(desk.path("key")).expect("a file").permissions().mode() & 0o777, 0o600);
    desk.ssh_keygen(&["-y", "-f", "key"]);
    desk.ssh_keygen(&["-l", "-f", "key.pub"]);
    assert_ne!(generate_key(&desk.path("other"), None, "").expect("a key"), key);
}

#[test]
fn a_passphrase_is_asked_for() {
    let desk = Keyring::new();
    let path = desk.path("key");
    generate_key(&path, Some("open sesame"), "").expect("a key");
    desk.ssh_keygen(&["-y", "-P", "open sesame", "-f", "key"]);
    assert!(!desk.run("ssh-keygen", &["-y", "-P", "", "-f", "key"]));
    let open = |ask: &AskPassphrase<'_>| Signer::open_with(&path, None, ask);
    assert!(open(&|_| Ok(Zeroizing::new("open sesame".to_owned()))).is_ok());
    let wrong = open(&|_| Ok(Zeroizing::new("open".to_owned())));
    assert!(matches!(wrong, Err(Error::File { fault: FileFault::Key(SignError::WrongPassphrase), .. })));
    assert!(matches!(open(&|_| Err(Error::Cancelled)), Err(Error::Cancelled)));
    assert!(generate_key(&desk.path("empty"), Some(""), "").is_err());
    assert!(!desk.path("empty").exists() && !desk.path("empty.pub").exists());
}

#[test]
fn nothing_is_written_over() {
    let desk = Keyring::new();
    for (taken, other) in [("one", "one.pub"), ("two.pub", "two")] {
        desk.write(taken, "precious");
        let error = generate_key(&desk.path(taken.trim_end_matches(".pub")), None, "").expect_err("it is taken");
        assert!(error.to_string().contains(taken), "{error}");
        assert_eq!(error.exit_status(), 2);
        assert_eq!(fs::read(desk.path(taken)).expect("a file"), b"precious");
        assert!(!desk.path(other).exists(), "half a key is left");
    }
    let key = desk.written("three", "");
    assert!(matches!(Signer::open_with(&key, None, &no_passphrase), Err(Error::File { fault: FileFault::Key(_), .. })));
    assert!(generate_key(&desk.path("four"), None, "two\nlines").is_err());
}
