//! Ed25519 signatures of commits: what a remote's `sign-verify` requires, and the keys that count.
//!
//! OSTree has several signature engines. In this one, `ed25519`, a signature has 64 bytes and covers the commit object; at least one must be valid.
//! Keys are those of the remote or, if it has `sign-verify=true` and names none, those of the system.

use std::path::Path;

use ed25519_dalek::{Signature, VerifyingKey};
use sealift_format::ostree::Dictionary;

use super::key_list::{Key, KeyList, key};
use crate::Error;
use crate::error::RepoFault;
use crate::ostree::remote::Remote;
use crate::ostree::repo::Repo;
use crate::ostree::system::System;

/// The engine's key in detached metadata.
const SIGNATURES: &str = "ostree.sign.ed25519";
const KEY: &str = "verification-ed25519-key";
const FILE: &str = "verification-ed25519-file";

/// The keys that a remote's commits are verified with.
#[derive(Debug)]
pub(super) struct Ed25519 {
    trusted: Vec<Key>,
    revoked: Vec<Key>,
}

impl Ed25519 {
    /// Returns what a remote requires by `setting`, `sign-verify` or `sign-verify-summary`; `None` if nothing.
    ///
    /// # Errors
    /// Returns an error if the requirement is unknown, or if it names keys that cannot be read.
    pub(super) fn asked(repo: &Repo, remote: &Remote, setting: &'static str) -> Result<Option<Self>, Error> {
        let fault = |fault| repo.fault(fault);
        let value = remote.text(setting).map_err(fault)?.unwrap_or_default();
        let own = match &*value {
            "" | "false" | "0" => return Ok(None),
            "true" | "1" => own_keys(remote).map_err(fault)?,
            _ => Some(named_keys(remote, setting, &value).map_err(fault)?),
        };
        let trusted = own.map_or_else(|| system_keys(repo.system()), Ok)?;
        Ok(Some(Self { trusted, revoked: revoked_keys(repo.system())? }))
    }

    /// Checks that one of the signatures of a commit is valid.
    ///
    /// # Errors
    /// Returns an error with the reason if none is.
    pub(super) fn check(&self, beside: Option<&Dictionary<'_>>, signed: &[u8]) -> Result<(), String> {
        let value = beside.and_then(|beside| beside.value(SIGNATURES));
        self.judge(&value.and_then(|value| value.byte_strings()).unwrap_or_default(), signed)
    }

    fn judge(&self, signatures: &[&[u8]], signed: &[u8]) -> Result<(), String> {
        if signatures.is_empty() {
            return Err("the remote requires an Ed25519 signature and the commit has none".into());
        }
        if self.trusted.is_empty() {
            return Err(format!("the remote has no Ed25519 key to verify it with, neither in {KEY} nor in {FILE}"));
        }
        let (revoked, counting): (Vec<&Key>, Vec<&Key>) =
            self.trusted.iter().partition(|key| self.revoked.contains(key));
        let mut why = "no Ed25519 key of the remote signed it";
        for signature in signatures {
            // In libostree too, a signature of another length ends the list, whatever follows.
            let signature: &[u8; 64] = (*signature)
                .try_into()
                .map_err(|_| format!("an Ed25519 signature has {} bytes instead of 64", signature.len()))?;
            if counting.iter().any(|key| verifies(key, signed, signature)) {
                return Ok(());
            }
            if revoked.iter().any(|key| verifies(key, signed, signature)) {
                why = "the Ed25519 key that signed it is revoked";
            }
        }
        Err(why.into())
    }
}

/// Verifies as strictly as libsodium, one of the two libraries behind libostree: refuses a key or a commitment of small order, with which one
/// signature is valid for many commits, and a second form of a signature. OpenSSL, the other library, refuses only the last. No honest signer
/// produces any of these.
fn verifies(key: &Key, signed: &[u8], signature: &[u8; 64]) -> bool {
    let key = VerifyingKey::from_bytes(key);
    key.is_ok_and(|key| key.verify_strict(signed, &Signature::from_bytes(signature)).is_ok())
}

/// Returns the keys of a remote that lists engines, which must name its keys.
fn named_keys(remote: &Remote, setting: &'static str, value: &str) -> Result<Vec<Key>, RepoFault> {
    let engines = remote.texts(setting, ';')?;
    match engines.iter().find(|engine| *engine != "ed25519") {
        None if !engines.is_empty() => {}
        Some(engine) if engine == "spki" => {
            return Err(remote.fault(format!("{setting} = {value:?}, but sealift verifies only ed25519 signatures")));
        }
        _ => {
            return Err(remote
                .fault(format!("{setting} = {value:?} is not a known kind of signature: use true, false or ed25519")));
        }
    }
    let missing = || {
        remote.fault(format!(
            "{setting} = {value:?} needs a key in {KEY} or {FILE}; only true stands for the system's keys"
        ))
    };
    own_keys(remote)?.ok_or_else(missing)
}

/// Returns the keys that a remote names; `None` if it names neither a file nor a key.
fn own_keys(remote: &Remote) -> Result<Option<Vec<Key>>, RepoFault> {
    let (file, inline) = (remote.text(FILE)?, remote.text(KEY)?);
    if file.is_none() && inline.is_none() {
        return Ok(None);
    }
    let mut keys = Vec::new();
    if let Some(file) = file {
        keys.extend(file_keys(Path::new(&file)).map_err(|why| remote.fault(format!("{FILE} = {file:?} {why}")))?);
    }
    if let Some(inline) = inline {
        let wrong = || remote.fault(format!("{KEY} = {inline:?} is not an Ed25519 key: 32 bytes in base64"));
        keys.push(key(inline.as_bytes()).ok_or_else(wrong)?);
    }
    Ok(Some(keys))
}

/// Returns all keys of a file that a remote names.
fn file_keys(path: &Path) -> Result<Vec<Key>, String> {
    let list = KeyList::read(path).map_err(|error| format!("cannot be read: {error}"))?;
    if let Some(line) = list.empty {
        return Err(format!("has an empty line {line}, and OSTree ignores a file with an empty line"));
    }
    if list.keys.is_empty() { Err("holds no Ed25519 key: 32 bytes in base64 on a line".into()) } else { Ok(list.keys) }
}

/// Returns the keys for remotes that name none.
fn system_keys(system: &System) -> Result<Vec<Key>, Error> {
    let mut keys = Vec::new();
    for path in system.files("trusted.ed25519")? {
        let list = KeyList::read(&path).map_err(|error| Error::io("read", &path, error))?;
        match list.empty {
            None => keys.extend(list.keys),
            Some(line) => tracing::warn!(?path, line, "ignored these keys, as OSTree does: the file has an empty line"),
        }
    }
    Ok(keys)
}

/// Returns the revoked keys, which count for no remote. libostree checks them only if the trusted keys are the system's too, and stops at an empty
/// line; here a revoked key never counts.
fn revoked_keys(system: &System) -> Result<Vec<Key>, Error> {
    let mut keys = Vec::new();
    for path in system.files("revoked.ed25519")? {
        let list = KeyList::read(&path).map_err(|error| Error::io("read", path, error))?;
        keys.extend(list.keys);
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use base64ct::{Base64, Encoding as _};
    use ed25519_dalek::{Signer as _, SigningKey};
    use tempfile::TempDir;

    use super::*;
    use crate::fs::confined::open_user_dir;

    /// RFC 8032, 7.1: secret key, message and signature of tests 1 to 3.
    const VECTORS: [(&str, &str, &str); 3] = [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ),
        (
            "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
            "af82",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
        ),
    ];

    fn unhex(text: &str) -> Vec<u8> {
        let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("it is hexadecimal");
        (0..text.len()).step_by(2).map(byte).collect()
    }

    fn secret(number: usize) -> SigningKey {
        SigningKey::from_bytes(&unhex(VECTORS[number].0).try_into().expect("32 bytes"))
    }

    fn public(number: usize) -> String {
        Base64::encode_string(secret(number).verifying_key().as_bytes())
    }

    /// A system with a repository that has one remote.
    struct Desk(TempDir);

    impl Desk {
        fn new() -> Self {
            let desk = Self(TempDir::new().expect("a folder"));
            for folder in ["repo/objects", "etc/ostree", "usr/share/ostree"] {
                fs::create_dir_all(desk.0.path().join(folder)).expect("a folder");
            }
            desk
        }

        fn write(&self, path: &str, text: &str) -> String {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(&path, text).expect("there is room");
            path.display().to_string()
        }

        fn asked(&self, settings: &str) -> Result<Option<Ed25519>, String> {
            self.write("repo/config", &format!("[core]\nrepo_version=1\n[remote \"os\"]\n{settings}\n"));
            let path = self.0.path().join("repo");
            let root = open_user_dir(&path).expect("a folder");
            let repo = Repo::within(System::at(self.0.path()), root, &path).expect("it opens");
            let asked = Ed25519::asked(&repo, &repo.config().remotes[0], "sign-verify");
            asked.map_err(|error| error.to_string())
        }

        fn keys(&self, settings: &str) -> Ed25519 {
            self.asked(settings).expect("the keys can be read").expect("signatures are asked for")
        }

        fn refused(&self, settings: &str) -> String {
            self.asked(settings).expect_err(settings)
        }
    }

    #[test]
    fn known_answers() {
        let desk = Desk::new();
        for (number, (_, message, signature)) in VECTORS.iter().enumerate() {
            let keys = desk.keys(&format!("sign-verify=ed25519\nverification-ed25519-key={}", public(number)));
            let (message, signature) = (unhex(message), unhex(signature));
            assert_eq!(keys.judge(&[&signature], &message), Ok(()));
            assert!(keys.judge(&[&signature], b"another").is_err());
            for at in 0..signature.len() {
                let mut other = signature.clone();
                other[at] ^= 1;
                assert!(keys.judge(&[&other], &message).is_err(), "{at}");
            }
        }
    }

    /// The neutral element as key and as commitment makes an all-zero signature valid for any message, unless checked.
    #[test]
    fn small_orders() {
        let mut one = [0; 32];
        one[0] = 1;
        let keys = Ed25519 { trusted: vec![one], revoked: Vec::new() };
        let signature = [one, [0; 32]].concat();
        assert!(keys.judge(&[&signature], b"any commit").is_err());
        // The same signature with its scalar beyond the order of the group.
        let order = unhex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
        let mut second = secret(0).sign(b"commit").to_bytes();
        let mut carry = 0_u16;
        for (byte, more) in second[32..].iter_mut().zip(order) {
            let sum = u16::from(*byte) + u16::from(more) + carry;
            (*byte, carry) = (sum.to_le_bytes()[0], sum >> 8);
        }
        let keys = Ed25519 { trusted: vec![secret(0).verifying_key().to_bytes()], revoked: Vec::new() };
        assert!(keys.judge(&[&second], b"commit").is_err());
        assert_eq!(keys.judge(&[&secret(0).sign(b"commit").to_bytes()], b"commit"), Ok(()));
    }

    #[test]
    fn what_is_asked() {
        let desk = Desk::new();
        for nothing in ["", "sign-verify=", "sign-verify=false", "sign-verify=0 ", "sign-verify=0"] {
            let asked = desk.asked(nothing);
            assert_eq!(asked.is_err(), nothing.ends_with(' '), "{nothing:?}: {asked:?}");
            assert!(!matches!(asked, Ok(Some(_))), "{nothing:?}");
        }
        let key = format!("verification-ed25519-key={}", public(0));
        for kinds in ["true", "1", "ed25519", "ed25519;"] {
            assert_eq!(desk.keys(&format!("sign-verify={kinds}\n{key}")).trusted.len(), 1, "{kinds}");
        }
        for kinds in ["ed25519;spki", "spki"] {
            assert!(
                desk.refused(&format!("sign-verify={kinds}\n{key}")).contains("verifies only ed25519 signatures"),
                "{kinds}"
            );
        }
        for kinds in ["nosuch", "ed25519;nosuch", "dummy", "Ed25519", "TRUE", "true ", ";", "ed25519,"] {
            let said = desk.refused(&format!("sign-verify={kinds}\n{key}"));
            assert!(said.contains("is not a known kind of signature"), "{kinds}: {said}");
        }
        let said = desk.refused("sign-verify=ed25519");
        assert!(said.contains("in verification-ed25519-key or verification-ed25519-file"), "{said}");
        for wrong in ["", "AAAA", "junk!", &public(0)[..40], &format!("{}{}", public(0), public(1))] {
            let said = desk.refused(&format!("sign-verify=true\nverification-ed25519-key={wrong}"));
            assert!(said.contains("is not an Ed25519 key"), "{wrong}: {said}");
        }
    }

    #[test]
    fn keys_of_a_file() {
        let desk = Desk::new();
        let settings = |path: &str| format!("sign-verify=ed25519\nverification-ed25519-file={path}");
        let several = desk.write("several", &format!("# of the desk\n{}\nno/base64\n{}\n", public(1), public(0)));
        let keys = desk.keys(&settings(&several));
        let sign = |number| secret(number).sign(b"commit").to_bytes();
        assert_eq!(keys.judge(&[&sign(0)], b"commit"), Ok(()));
        assert_eq!(keys.judge(&[&sign(1)], b"commit"), Ok(()));
        assert_eq!(keys.judge(&[&sign(2), &sign(1)], b"commit"), Ok(()));
        assert!(keys.judge(&[&sign(2)], b"commit").expect_err("it is another's").contains("signed it"));
        let with_key = format!("{}\nverification-ed25519-key={}", settings(&several), public(2));
        assert_eq!(desk.keys(&with_key).judge(&[&sign(2)], b"commit"), Ok(()));

        assert!(desk.refused(&settings("/nonexistent")).contains("\"/nonexistent\" cannot be read: No such file"));
        assert!(desk.refused(&settings(&desk.0.path().display().to_string())).contains("not a regular file"));
        for none in ["", "# nothing\n", "junk\n"] {
            assert!(desk.refused(&settings(&desk.write("none", none))).contains("holds no Ed25519 key"), "{none}");
        }
        let gap = desk.write("gap", &format!("{}\n\n{}\n", public(1), public(0)));
        assert!(desk.refused(&settings(&gap)).contains("has an empty line 2"));
    }

    #[test]
    fn keys_of_the_system() {
        let desk = Desk::new();
        let sign = |number| secret(number).sign(b"commit").to_bytes();
        let judge = |number| desk.keys("sign-verify=true").judge(&[&sign(number)], b"commit");
        assert!(judge(0).expect_err("there is no key").contains("the remote has no Ed25519 key to verify it with"));
        desk.write("etc/ostree/trusted.ed25519", &public(0));
        desk.write("usr/share/ostree/trusted.ed25519.d/any-name", &format!("{}\n", public(1)));
        desk.write("etc/ostree/trusted.ed25519.d/late", &format!("{}\n\n", public(2)));
        assert_eq!((judge(0), judge(1)), (Ok(()), Ok(())));
        assert!(judge(2).expect_err("its file has an empty line").contains("signed it"));
        // The system's keys do not count for a remote that names its own.
        let own = desk.keys(&format!("sign-verify=true\nverification-ed25519-key={}", public(2)));
        assert_eq!(own.judge(&[&sign(2)], b"commit"), Ok(()));
        assert!(own.judge(&[&sign(0)], b"commit").is_err());

        desk.write("usr/share/ostree/revoked.ed25519", &format!("# lost\n\n{}\n", public(0)));
        desk.write("etc/ostree/revoked.ed25519.d/more", &public(2));
        assert!(judge(0).expect_err("it is revoked").contains("is revoked"));
        assert_eq!(judge(1), Ok(()));
        let keys = desk.keys("sign-verify=true");
        assert_eq!(keys.judge(&[&sign(0), &sign(1)], b"commit"), Ok(()), "the key that is lost signed as well");
        let revoked = desk.keys(&format!("sign-verify=ed25519\nverification-ed25519-key={}", public(2)));
        assert!(revoked.judge(&[&sign(2)], b"commit").expect_err("it is revoked").contains("is revoked"));
    }

    #[test]
    fn lengths() {
        let desk = Desk::new();
        let keys = desk.keys(&format!("sign-verify=true\nverification-ed25519-key={}", public(0)));
        let good = secret(0).sign(b"commit").to_bytes();
        assert!(keys.judge(&[], b"commit").expect_err("there is none").contains("the commit has none"));
        for wrong in [&good[..63], &good[..32], &[], &[&good[..], &[0]].concat()[..]] {
            let said = keys.judge(&[wrong], b"commit").expect_err("it is none");
            assert!(said.contains(&format!("has {} bytes instead of 64", wrong.len())), "{said}");
            assert!(keys.judge(&[wrong, &good], b"commit").is_err());
            assert_eq!(keys.judge(&[&good, wrong], b"commit"), Ok(()));
        }
        assert!(keys.judge(&[&[0; 64]], b"commit").is_err());
        assert_eq!(keys.judge(&[&[0; 64], &good], b"commit"), Ok(()));
    }
}
