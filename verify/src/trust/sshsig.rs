//! Signatures as `ssh-keygen -Y sign` makes them (OpenSSH's PROTOCOL.sshsig).

use sha2::{Digest, Sha256, Sha512};

use super::proof::Proof;
use super::wire::{Reader, put_string, shown};
use super::{KeyError, KeyId, PublicKey, SignatureError, Unaccepted, UnknownSignature, armor};

const MAGIC: &[u8; 6] = b"SSHSIG";
const VERSION: u32 = 1;

/// What a signature is for, by the namespace in it: one made for `file` or `git` does not count, nor one of a bundle for a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the specification lists them")]
pub enum Namespace {
    /// A bundle (trust 3).
    Bundle,
    /// The list of a channel (channel 4), which the page does not read.
    #[cfg(not(target_arch = "wasm32"))]
    List,
}

impl Namespace {
    pub(super) const ALL: &[Self] = &[
        Self::Bundle,
        #[cfg(not(target_arch = "wasm32"))]
        Self::List,
    ];

    /// Returns the namespace as it stands in a signature.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bundle => "sealift",
            #[cfg(not(target_arch = "wasm32"))]
            Self::List => "sealift-channel",
        }
    }
}

/// A well-formed signature for a bundle or a list that names an accepted
/// key. [`SshSignature::verify`] checks whether it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshSignature {
    namespace: Namespace,
    key: PublicKey,
    hash: MessageHash,
    proof: Proof,
}

/// The hash algorithm for the message: the key signs the hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageHash {
    Sha256,
    Sha512,
}

impl SshSignature {
    /// Parses the binary blob of a bundle's signature, which is the base64 of an armored one.
    ///
    /// # Errors
    /// As [`SshSignature::parse_for`].
    pub fn parse(blob: &[u8]) -> Result<Self, SignatureError> {
        Self::parse_for(Namespace::Bundle, blob)
    }

    /// Parses the binary blob of a signature for this namespace.
    ///
    /// # Errors
    /// Returns [`SignatureError::Unknown`] if it is well-formed and names a key or an
    /// algorithm that Sealift does not accept. Returns another error if it is
    /// malformed, has a malformed key, or was made for another namespace.
    pub fn parse_for(expected: Namespace, blob: &[u8]) -> Result<Self, SignatureError> {
        let mut reader = Reader::new(blob);
        if reader.take(MAGIC.len())? != MAGIC {
            return Err(SignatureError::Malformed("it does not begin with SSHSIG"));
        }
        if reader.u32()? != VERSION {
            return Err(SignatureError::Malformed("its version is not 1"));
        }
        let key = reader.string()?;
        let namespace = reader.string()?;
        let reserved = reader.string()?;
        let hash = reader.string()?;
        let proof = reader.string()?;
        reader.finish()?;

        // Checked first, so that a signature for another purpose is reported as such.
        if namespace != expected.as_str().as_bytes() {
            return Err(SignatureError::Namespace(shown(namespace)));
        }
        if !reserved.is_empty() {
            return Err(SignatureError::Malformed("its reserved field is not empty"));
        }
        let key_type = Reader::new(key).string()?;
        let mut strings = Reader::new(proof);
        let algorithm = strings.string()?;
        strings.string()?;

        let unknown = |what| {
            let unknown = UnknownSignature { key: KeyId::of_blob(key), key_type: shown(key_type), what };
            SignatureError::Unknown(Box::new(unknown))
        };
        let key = PublicKey::parse(key).map_err(|error| match error {
            KeyError::Malformed(_) => error.into(),
            KeyError::Certificate(name) => unknown(Unaccepted::Certificate(name)),
            KeyError::Unsupported(name) => unknown(Unaccepted::KeyType(name)),
            KeyError::RsaBits { bits } => unknown(Unaccepted::RsaBits(bits)),
        })?;
        let hash = match hash {
            b"sha256" => MessageHash::Sha256,
            b"sha512" => MessageHash::Sha512,
            other => return Err(unknown(Unaccepted::Hash(shown(other)))),
        };
        let proof = Proof::parse(proof, &key)?
            .ok_or_else(|| unknown(Unaccepted::Algorithm { algorithm: shown(algorithm), key_type: key.key_type() }))?;
        Ok(Self { namespace: expected, key, hash, proof })
    }

    /// Parses the armored text that `ssh-keygen -Y sign` writes.
    ///
    /// # Errors
    /// Returns an error if the armor is malformed, and the errors of
    /// [`SshSignature::parse`].
    pub fn from_armor(text: &[u8]) -> Result<Self, SignatureError> {
        Self::parse(&armor::decode(text)?)
    }

    /// Returns the key that the signature names, which proves nothing by itself.
    #[must_use]
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// Verifies that the key signed exactly these bytes, and returns the key.
    ///
    /// # Errors
    /// Returns an error if the signature does not match, or an authenticator was not
    /// touched.
    pub fn verify(&self, signed_bytes: &[u8]) -> Result<&PublicKey, SignatureError> {
        let data = data_to_sign(self.namespace, self.hash, signed_bytes);
        self.proof.check(&self.key, &data)?;
        Ok(&self.key)
    }
}

/// Returns the blob that a key signs for `message`.
pub(super) fn data_to_sign(namespace: Namespace, hash: MessageHash, message: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    put_string(&mut out, namespace.as_str().as_bytes());
    put_string(&mut out, b"");
    match hash {
        MessageHash::Sha256 => {
            put_string(&mut out, b"sha256");
            put_string(&mut out, &Sha256::digest(message));
        }
        MessageHash::Sha512 => {
            put_string(&mut out, b"sha512");
            put_string(&mut out, &Sha512::digest(message));
        }
    }
    out
}

/// Returns the envelope around a signature over [`data_to_sign`] with SHA-512.
#[cfg(any(test, feature = "sign"))]
pub(super) fn envelope(namespace: Namespace, key_blob: &[u8], signature_blob: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&VERSION.to_be_bytes());
    put_string(&mut out, key_blob);
    put_string(&mut out, namespace.as_str().as_bytes());
    put_string(&mut out, b"");
    put_string(&mut out, b"sha512");
    put_string(&mut out, signature_blob);
    out
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    const MESSAGE: &[u8] = b"preamble and root";

    fn judge(blob: &[u8]) -> Result<(), SignatureError> {
        SshSignature::parse(blob)?.verify(MESSAGE).map(|_| ())
    }

    #[test]
    fn a_good_signature_names_its_key() {
        let blob = sample::signature(1, MESSAGE);
        let signature = SshSignature::parse(&blob).expect("well formed");
        assert_eq!(signature.verify(MESSAGE), Ok(&sample::key(1)));
        assert_eq!(signature.verify(b"other"), Err(SignatureError::Mismatch));
        let armored = armor::encode(&blob);
        assert_eq!(SshSignature::from_armor(armored.as_bytes()), Ok(signature));
    }

    #[test]
    fn every_flip_cut_and_addition_fails() {
        let good = sample::signature(1, MESSAGE);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            assert!(judge(&bad).is_err(), "flip at {at}");
            assert!(judge(&good[..at]).is_err(), "cut at {at}");
        }
        let mut longer = good;
        longer.push(0);
        assert!(judge(&longer).is_err());
    }

    #[test]
    fn signatures_for_other_purposes_fail() {
        let good = sample::signature(1, MESSAGE);
        let at = good.windows(7).position(|seven| seven == b"sealift");
        for namespace in [&b"seaLift"[..], b"sealif*", b"file\0\0\0"] {
            let mut other = good.clone();
            let at = at.expect("it names its namespace");
            other[at..at + 7].copy_from_slice(namespace);
            assert!(matches!(judge(&other), Err(SignatureError::Namespace(_))));
        }
    }

    #[test]
    fn a_well_formed_signature_of_something_unknown_is_told_from_a_malformed_one() {
        let with = |key: &[u8], hash: &[u8], proof: &[u8]| {
            let mut out = [&MAGIC[..], &VERSION.to_be_bytes()].concat();
            out.extend(sample::strings(&[key, Namespace::Bundle.as_str().as_bytes(), b"", hash, proof]));
            judge(&out).expect_err("it is not good")
        };
        let key = sample::key(1);
        let proof = sample::strings(&[b"ssh-later", b"numbers"]);
        let later = sample::strings(&[b"ssh-later"]);
        for more in [&b""[..], b"anything"] {
            let unknown = with(&[&later, more].concat(), b"blake3", &[&proof, more].concat());
            let id = KeyId::of_blob(&[&later, more].concat());
            let what = Unaccepted::KeyType("ssh-later".into());
            let expected = UnknownSignature { key: id, key_type: "ssh-later".into(), what };
            assert_eq!(unknown.unknown(), Some(&expected));
        }
        let hash = with(key.blob(), b"blake3", &proof);
        assert!(hash.unknown().is_some_and(|unknown| unknown.what == Unaccepted::Hash("blake3".into())));

        for bad in [&b""[..], b"\0\0\0\x02x", &sample::strings(&[b"ssh-later"])] {
            assert!(with(&later, b"sha512", bad).unknown().is_none(), "{bad:?}");
        }
        for bad in [&b""[..], b"\0\0\0\x02x", &key.blob()[..20]] {
            assert!(with(bad, b"blake3", &proof).unknown().is_none(), "{bad:?}");
        }
    }

    #[test]
    fn the_reserved_field_is_empty() {
        let good = sample::signature(1, MESSAGE);
        // The bytes after the namespace are the reserved field's length.
        let at = good.windows(7).position(|seven| seven == b"sealift");
        let at = at.expect("it names its namespace") + 7;
        let mut bad = good;
        bad.splice(at..at + 4, [0, 0, 0, 1, 0]);
        let refused = judge(&bad);
        let what = "its reserved field is not empty";
        assert_eq!(refused, Err(SignatureError::Malformed(what)));
    }
}
