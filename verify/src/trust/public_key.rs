//! The public keys that may sign a bundle, in their canonical encoding
//! (RFC 4253, RFC 5656, RFC 8709, OpenSSH's PROTOCOL.u2f).

use core::fmt;

use base64ct::{Base64, Encoding};
use p256::elliptic_curve::point::AffineCoordinates as _;
use p256::{AffinePoint, FieldBytes, ecdsa};

use super::rsa::RsaPublicKey;
use super::wire::{Malformed, Reader, names_type, shown};
use super::word::word;
use super::{KeyError, KeyId, armor};

/// The type of a key, shown by its OpenSSH name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyType {
    /// Ed25519.
    Ed25519,
    /// ECDSA over NIST P-256.
    EcdsaP256,
    /// Ed25519 in a FIDO authenticator.
    SkEd25519,
    /// ECDSA over NIST P-256 in a FIDO authenticator.
    SkEcdsaP256,
    /// RSA of 3072 bits or more.
    Rsa,
}

impl KeyType {
    /// Returns OpenSSH's name of the type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ed25519 => "ssh-ed25519",
            Self::EcdsaP256 => "ecdsa-sha2-nistp256",
            Self::SkEd25519 => "sk-ssh-ed25519@openssh.com",
            Self::SkEcdsaP256 => "sk-ecdsa-sha2-nistp256@openssh.com",
            Self::Rsa => "ssh-rsa",
        }
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A public key that may sign, parsed from its canonical blob.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    blob: Vec<u8>,
    id: KeyId,
    pub(super) material: Material,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Material {
    Ed25519(ed25519_dalek::VerifyingKey),
    EcdsaP256(ecdsa::VerifyingKey),
    SkEd25519(ed25519_dalek::VerifyingKey, Vec<u8>),
    SkEcdsaP256(ecdsa::VerifyingKey, Vec<u8>),
    Rsa(RsaPublicKey),
}

impl PublicKey {
    /// Parses the blob that is base64 in a `.pub` file.
    ///
    /// # Errors
    /// Returns an error if it is malformed, not canonical, a certificate, or of a
    /// type or length that Sealift does not accept.
    pub fn parse(blob: &[u8]) -> Result<Self, KeyError> {
        let mut reader = Reader::new(blob);
        let material = match reader.string()? {
            b"ssh-ed25519" => Material::Ed25519(read_ed25519(&mut reader)?),
            b"ecdsa-sha2-nistp256" => Material::EcdsaP256(read_p256(&mut reader)?),
            b"sk-ssh-ed25519@openssh.com" => {
                let key = read_ed25519(&mut reader)?;
                Material::SkEd25519(key, reader.string()?.to_vec())
            }
            b"sk-ecdsa-sha2-nistp256@openssh.com" => {
                let key = read_p256(&mut reader)?;
                Material::SkEcdsaP256(key, reader.string()?.to_vec())
            }
            b"ssh-rsa" => Material::Rsa(RsaPublicKey::read(&mut reader)?),
            other => return Err(refuse_type(other)),
        };
        reader.finish()?;
        Ok(Self { blob: blob.to_vec(), id: KeyId::of_blob(blob), material })
    }

    /// Parses the line of a `.pub` file: type, base64 and a comment.
    ///
    /// # Errors
    /// Returns an error if it is not such a line, and the errors of
    /// [`PublicKey::parse`].
    pub fn from_openssh(line: &str) -> Result<Self, KeyError> {
        let (key_type, rest) = word(line.trim());
        let blob = armor::decode_base64(word(rest).0.as_bytes())?;
        if !names_type(&blob, key_type) {
            return Err(KeyError::Malformed("it is not of the type given before it"));
        }
        Self::parse(&blob)
    }

    /// Returns the line of a `.pub` file, without a comment.
    #[must_use]
    pub fn to_openssh(&self) -> String {
        format!("{} {}", self.key_type(), Base64::encode_string(&self.blob))
    }

    /// Returns the canonical blob.
    #[must_use]
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// Returns the key's id.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Returns the key's type.
    #[must_use]
    pub fn key_type(&self) -> KeyType {
        match self.material {
            Material::Ed25519(_) => KeyType::Ed25519,
            Material::EcdsaP256(_) => KeyType::EcdsaP256,
            Material::SkEd25519(..) => KeyType::SkEd25519,
            Material::SkEcdsaP256(..) => KeyType::SkEcdsaP256,
            Material::Rsa(_) => KeyType::Rsa,
        }
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key_type(), self.id)
    }
}

fn refuse_type(name: &[u8]) -> KeyError {
    if is_certificate(name) { KeyError::Certificate(shown(name)) } else { KeyError::Unsupported(shown(name)) }
}

fn read_ed25519(reader: &mut Reader<'_>) -> Result<ed25519_dalek::VerifyingKey, KeyError> {
    let bytes: [u8; 32] = reader.string()?.try_into().map_err(|_| Malformed("an Ed25519 key is not 32 bytes"))?;
    let key =
        ed25519_dalek::VerifyingKey::from_bytes(&bytes).map_err(|_| Malformed("an Ed25519 key is not a point"))?;
    // With a point of small order, one signature would match many messages.
    if key.is_weak() {
        return Err(KeyError::Malformed("an Ed25519 key is of small order"));
    }
    // The decoder accepts both y and y + p; only one may encode the key.
    if key.to_edwards().compress().to_bytes() != bytes {
        return Err(KeyError::Malformed("an Ed25519 key is not in its canonical form"));
    }
    Ok(key)
}

/// Returns whether a key type is that of a certificate.
fn is_certificate(key_type: &[u8]) -> bool {
    key_type.windows(7).any(|part| part == b"-cert-v")
}

fn read_p256(reader: &mut Reader<'_>) -> Result<ecdsa::VerifyingKey, KeyError> {
    if reader.string()? != b"nistp256" {
        return Err(KeyError::Malformed("the curve is not nistp256"));
    }
    let point = reader.string()?;
    // The compressed form would be a second encoding, which OpenSSH never writes.
    if point.len() != 65 || point.first() != Some(&4) {
        return Err(KeyError::Malformed("a P-256 key is not an uncompressed point"));
    }
    let off_curve = KeyError::Malformed("a P-256 key is not a point of the curve");
    let Some((x, y)) = point[1..].split_at_checked(32) else { return Err(off_curve) };
    let (Ok(x), Ok(y)) = (FieldBytes::try_from(x), FieldBytes::try_from(y)) else { return Err(off_curve) };
    // Not with `from_sec1_bytes`, which brings in square roots for the compressed form.
    let point: Option<AffinePoint> = AffinePoint::from_coordinates(&x, &y).into();
    point.and_then(|point| ecdsa::VerifyingKey::from_affine(point).ok()).ok_or(off_curve)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, strings as blob};
    use super::*;

    fn refusal(blob: &[u8]) -> String {
        PublicKey::parse(blob).expect_err("a bad key").to_string()
    }

    fn ed25519() -> [u8; 32] {
        ed25519_dalek::SigningKey::from_bytes(&[7; 32]).verifying_key().to_bytes()
    }

    #[test]
    fn a_key_is_read_back() {
        let blob = blob(&[b"ssh-ed25519", &ed25519()]);
        let key = PublicKey::parse(&blob).expect("a good key");
        assert_eq!(key.key_type(), KeyType::Ed25519);
        assert_eq!(key.blob(), blob);
        assert_eq!(key.id(), KeyId::of_blob(&blob));
        assert_eq!(PublicKey::from_openssh(&sample::line(1)), Ok(sample::key(1)));
        assert!(PublicKey::from_openssh("ssh-rsa AAAAC3NzaC1lZDI1NTE5").is_err());
        assert_eq!(PublicKey::from_openssh(&key.to_openssh()), Ok(key));
        assert!(PublicKey::from_openssh("").is_err());
    }

    #[test]
    fn a_key_has_one_spelling() {
        let mut trailing = blob(&[b"ssh-ed25519", &ed25519()]);
        trailing.push(0);
        assert!(refusal(&trailing).contains("bytes follow"));

        let point = ecdsa::SigningKey::from_slice(&[7; 32]).expect("in range");
        let compressed = point.verifying_key().to_sec1_point(true);
        let compressed = blob(&[b"ecdsa-sha2-nistp256", b"nistp256", compressed.as_bytes()]);
        assert!(refusal(&compressed).contains("uncompressed"));

        let mut off_curve = point.verifying_key().to_sec1_point(false).as_bytes().to_vec();
        off_curve[64] ^= 1;
        let off_curve = blob(&[b"ecdsa-sha2-nistp256", b"nistp256", &off_curve]);
        assert!(refusal(&off_curve).contains("not a point"));

        let other_curve = blob(&[b"ecdsa-sha2-nistp256", b"nistp384", &[4; 65]]);
        assert!(refusal(&other_curve).contains("curve"));
    }

    #[test]
    fn weak_and_non_canonical_points_are_refused() {
        // y = 1, the neutral element; y = p + 3, where y = 3 is a point of large order.
        let mut one = [0; 32];
        one[0] = 1;
        let mut past_p = [0xff; 32];
        past_p[0] = 0xed + 3;
        past_p[31] = 0x7f;
        assert!(refusal(&blob(&[b"ssh-ed25519", &one])).contains("small order"));
        assert!(refusal(&blob(&[b"ssh-ed25519", &past_p])).contains("canonical"));
        assert!(refusal(&blob(&[b"ssh-ed25519", &[0; 31]])).contains("32 bytes"));
    }

    #[test]
    fn other_types_are_refused_by_name() {
        assert!(refusal(&blob(&[b"ssh-dss", b""])).contains("ssh-dss"));
        let certificate = blob(&[b"ssh-ed25519-cert-v01@openssh.com", b""]);
        assert!(refusal(&certificate).contains("certificate"));
        assert!(refusal(b"").contains("ends inside"));
    }
}
