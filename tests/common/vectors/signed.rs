//! Signatures and trust (trust).

use base64ct::{Base64, Encoding as _};

use super::*;
use crate::ed25519;
use crate::keys::{Key, SshSig, data_to_sign, ecdsa_numbers, ecdsa_of, mpint, sshsig, sshsig_as, strings, unhex};
use crate::rsa::Rsa;

pub(super) const ONE: Key = Key::Ed25519(1);
const TWO: Key = Key::Ed25519(2);
pub(super) const NOW: i64 = 1_800_000_000;

pub(super) fn vectors() -> Vec<Vector> {
    [key_types(), envelopes(), unknown(), judgement(), lines()].into_iter().flatten().collect()
}

/// Returns trust settings with these lines of allowed signers, at the current time.
fn trust<const N: usize>(signers: [String; N]) -> Trust {
    Trust { signers: signers.to_vec(), now: Some(NOW), ..Trust::default() }
}

fn key_types() -> Vec<Vector> {
    let taken = |name, key: Key, area_len| {
        let mut bundle = small().signed_by(&[key]);
        bundle.area_len = area_len;
        let comment = format!("signed by a key of type {}", key.type_name());
        accept(name, &comment, bundle).trust(trust([key.allowed("test")]))
    };
    let mut longest = with_envelope(|signed| Rsa::made_for(signed, 16384, 3, true).sshsig());
    longest.area_len = 1 << 13;
    vec![
        taken("signature-ecdsa", Key::EcdsaP256, 512),
        taken("signature-sk-ed25519", Key::SkEd25519, 512),
        taken("signature-sk-ecdsa", Key::SkEcdsaP256, 512),
        taken("signature-rsa", Key::Rsa3072, 1024),
        accept(
            "signature-ecdsa-high",
            "s of an ECDSA signature is above half of the order",
            with_envelope(|signed| {
                let [r, s] = ecdsa_numbers(signed, true);
                ecdsa_of(&r, &s)
            }),
        )
        .trust(trust([Key::EcdsaP256.allowed("test")])),
        accept("signature-rsa-longest", "an RSA key of 16384 bits with the exponent 3", longest),
        accept(
            "signature-rsa-sha256",
            "an RSA signature with SHA-256",
            with_envelope(|signed| Rsa::of(signed, 65_537, "rsa-sha2-256").sshsig()),
        )
        .trust(trust([Key::Rsa3072.allowed("test")])),
        accept("signature-sha256", "signed over SHA-256", signed_as(&SshSig { hash: "sha256", ..SshSig::default() }))
            .trust(trust([ONE.allowed("test")])),
    ]
}

/// Returns the small bundle, signed by key one with other fields.
fn signed_as(fields: &SshSig) -> Bundle {
    let fields = fields.clone();
    with_envelope(move |signed| ONE.sign_as(signed, &fields))
}

/// Returns the small bundle with one envelope of kind 1.
fn with_envelope(make: impl Fn(&[u8]) -> Vec<u8> + 'static) -> Bundle {
    let mut bundle = small();
    bundle.area_len = 1024;
    bundle.envelopes.push(Box::new(move |signed| (1, make(signed))));
    bundle
}

fn envelopes() -> Vec<Vector> {
    let of = |name: &str, comment: &str, bundle: Bundle| {
        vector(name, "signature", comment, bundle.encode()).trust(trust([ONE.allowed("test")]))
    };
    let made = |name: &str, comment: &str, make: MakeSignature| of(name, comment, with_envelope(make));
    let as_fields = |name, comment, fields: SshSig| of(name, comment, signed_as(&fields));
    vec![
        made("signature-broken", "the signature is of other bytes", |signed| ONE.sign(&[signed, b"x"].concat())),
        made("signature-broken-ecdsa", "an ECDSA signature of other bytes", |signed| {
            Key::EcdsaP256.sign(&[signed, b"x"].concat())
        }),
        made("signature-broken-rsa", "an RSA signature of other bytes", |signed| {
            Key::Rsa3072.sign(&[signed, b"x"].concat())
        }),
        made("signature-algorithm-alone", "the algorithm of other keys, and no signature behind it", |_| {
            sshsig(&ONE.blob(), &strings(&[b"rsa-sha2-512"]))
        }),
        made("signature-key-empty", "a key without a type", |signed| {
            sshsig(b"", &ONE.prove(&data_to_sign(signed, &SshSig::default()), 0))
        }),
        made("signature-key-type-trailing", "a byte follows the signature by a key of type ssh-later", |_| {
            [&later()[..], &[0]].concat()
        }),
        made("signature-key-type-alone", "a key of type ssh-later, and no signature behind the algorithm", |_| {
            sshsig(&strings(&[b"ssh-later", b"key"]), &strings(&[b"ssh-later"]))
        }),
        made("signature-key-type-none", "a key of type ssh-later, and an empty signature", |_| {
            sshsig(&strings(&[b"ssh-later", b"key"]), b"")
        }),
        made("signature-hash-key", "a hash that is not known, and a key that is malformed", |_| {
            sshsig_as(&strings(&[b"ssh-ed25519", &[0; 31]]), "blake3", &strings(&[b"ssh-ed25519", &[0; 64]]))
        }),
        made("signature-algorithm-key", "an algorithm that is not known, and a key of small order", |_| {
            sshsig(&strings(&[b"ssh-ed25519", &[0; 32]]), &strings(&[b"ssh-later", b"signature"]))
        }),
        made("signature-hash-version", "an SSHSIG of version 2 whose hash is not known", |signed| {
            let mut body = ONE.sign_as(signed, &SshSig { hash: "blake3", ..SshSig::default() });
            body[9] = 2;
            body
        }),
        as_fields(
            "signature-hash-namespace",
            "a signature for the namespace file whose hash is not known",
            SshSig { namespace: b"file".to_vec(), hash: "blake3", ..SshSig::default() },
        ),
        as_fields(
            "signature-hash-reserved",
            "a signature whose reserved field is not empty, and whose hash is not known",
            SshSig { reserved: b"x".to_vec(), hash: "blake3", ..SshSig::default() },
        ),
        made("signature-off-curve", "an Ed25519 key with a y of 2, of which there is no point", |signed| {
            ed25519_of(&of_y(2), "sha512", signed)
        }),
        made("signature-off-curve-r", "R has a y of 2, of which there is no point", |signed| {
            let mut body = ONE.sign(signed);
            let at = body.len() - 64;
            body[at..at + 32].copy_from_slice(&of_y(2));
            body
        }),
        made(
            "signature-hash-off-curve",
            "a hash that is not known, and an Ed25519 key with a y of 2, of which there is no point",
            |signed| ed25519_of(&of_y(2), "blake3", signed),
        ),
        made("signature-ecdsa-off-curve", "an ECDSA key that is no point of the curve", |signed| {
            p256_of(b"nistp256", &off_curve(), "sha512", signed)
        }),
        made(
            "signature-hash-ecdsa-off-curve",
            "a hash that is not known, and an ECDSA key that is no point of the curve",
            |signed| p256_of(b"nistp256", &off_curve(), "blake3", signed),
        ),
        made("signature-ecdsa-infinity", "an ECDSA key that is the point at infinity", |signed| {
            p256_of(b"nistp256", &[0], "sha512", signed)
        }),
        made("signature-ecdsa-curve", "an ECDSA key of the curve nistp384", |signed| {
            p256_of(b"nistp384", &p256_point(), "sha512", signed)
        }),
        made(
            "signature-hash-ecdsa-curve",
            "a hash that is not known, and an ECDSA key of the curve nistp384",
            |signed| p256_of(b"nistp384", &p256_point(), "blake3", signed),
        ),
        made("signature-ecdsa-r-zero", "r of an ECDSA signature is 0, in no bytes", |signed| {
            ecdsa_of(&[], &ecdsa_numbers(signed, false)[1])
        }),
        made("signature-ecdsa-s-zero", "s of an ECDSA signature is 0, in no bytes", |signed| {
            ecdsa_of(&ecdsa_numbers(signed, false)[0], &[])
        }),
        made("signature-ecdsa-r-zero-byte", "r of an ECDSA signature is 0, in a zero byte", |signed| {
            ecdsa_of(&[0], &ecdsa_numbers(signed, false)[1])
        }),
        made("signature-ecdsa-s-zero-byte", "s of an ECDSA signature is 0, in a zero byte", |signed| {
            ecdsa_of(&ecdsa_numbers(signed, false)[0], &[0])
        }),
        made("signature-ecdsa-r-order", "r of an ECDSA signature is the order of the curve", |signed| {
            ecdsa_of(&p256_order(), &ecdsa_numbers(signed, false)[1])
        }),
        made("signature-ecdsa-s-order", "s of an ECDSA signature is the order of the curve", |signed| {
            ecdsa_of(&ecdsa_numbers(signed, false)[0], &p256_order())
        }),
        made("signature-mpint", "an RSA key whose exponent has a zero byte at its front", |signed| {
            let (body, own) = (Key::Rsa3072.sign(signed), Key::Rsa3072.blob());
            let exponent = strings(&[&[1, 0, 1]]);
            let at = own.windows(7).position(|window| window == exponent).expect("the exponent is there");
            let key = [&own[..at], &strings(&[&[0, 1, 0, 1]]), &own[at + 7..]].concat();
            [&body[..10], &strings(&[&key]), &body[14 + own.len()..]].concat()
        }),
        made("signature-rsa-modulus-even", "an RSA modulus that is even", |signed| {
            Rsa::made_for(signed, 3072, 3, false).sshsig()
        }),
        made("signature-rsa-exponent-even", "an RSA exponent of 2", |signed| {
            Rsa::made_for(signed, 3072, 2, true).sshsig()
        }),
        made("signature-rsa-exponent-one", "an RSA exponent of 1", |signed| {
            Rsa::of(signed, 1, "rsa-sha2-512").sshsig()
        }),
        made("signature-rsa-exponent-long", "an RSA exponent of 2^32+1", |signed| {
            Rsa::of(signed, (1 << 32) + 1, "rsa-sha2-512").sshsig()
        }),
        made("signature-rsa-trimmed", "an RSA signature without the zero bytes at its front", |signed| {
            let mut own = Rsa::made_for(signed, 3072, 3, true);
            own.signature.drain(..own.signature.iter().position(|byte| *byte != 0).expect("it is not zero"));
            own.sshsig()
        }),
        made("signature-rsa-past-modulus", "an RSA signature that is the modulus more", |signed| {
            Rsa::made_for(signed, 3072, 3, true).past_modulus().sshsig()
        }),
        made("signature-ecdsa-mpint", "r of an ECDSA signature has a zero byte at its front", |signed| {
            let [r, s] = ecdsa_numbers(signed, false);
            ecdsa_of(&[&[0], &r[..]].concat(), &s)
        }),
        made("signature-ecdsa-compressed", "an ECDSA key whose point is compressed", |signed| {
            let own = Key::EcdsaP256.blob();
            let proof = Key::EcdsaP256.prove(&data_to_sign(signed, &SshSig::default()), 0);
            let (x, y) = own[own.len() - 64..].split_at(32);
            let point = [&[2 + (y[31] & 1)], x].concat();
            sshsig(&strings(&[b"ecdsa-sha2-nistp256", b"nistp256", &point]), &proof)
        }),
        made("signature-rsa-short-trailing", "an RSA key of 2048 bits with a byte behind it", |signed| {
            let (body, own) = (Key::Rsa2048.sign(signed), Key::Rsa2048.blob());
            [&body[..10], &strings(&[&[&own[..], &[0]].concat()]), &body[14 + own.len()..]].concat()
        }),
        {
            let mut bundle = small();
            bundle.area_len = 1 << 15;
            for number in 0..65 {
                bundle.envelopes.push(Box::new(move |signed| (1, Key::Ed25519(number + 1).sign(signed))));
            }
            of("signature-many", "65 good signatures", bundle)
        },
        made("signature-foreign-bytes", "the envelope holds no SSHSIG", |_| b"PGP".to_vec()),
        made("signature-empty", "the envelope is empty", |_| Vec::new()),
        made("signature-trailing", "a byte follows the signature", |signed| [&ONE.sign(signed)[..], &[0]].concat()),
        made("signature-version", "an SSHSIG of version 2", |signed| {
            let mut body = ONE.sign(signed);
            body[9] = 2;
            body
        }),
        as_fields(
            "signature-namespace",
            "a good signature for the namespace file",
            SshSig { namespace: b"file".to_vec(), ..SshSig::default() },
        ),
        as_fields(
            "signature-reserved",
            "a good signature whose reserved field is not empty",
            SshSig { reserved: b"x".to_vec(), ..SshSig::default() },
        ),
        made("signature-no-touch", "an authenticator signed without a touch", |signed| {
            Key::SkEd25519.sign_as(signed, &SshSig { flags: 0, ..SshSig::default() })
        }),
        made("signature-small-order", "a key of small order, under which every message is signed", |_| {
            // The neutral element as key and as R, with S = 0.
            let mut point = [0; 32];
            point[0] = 1;
            let name = b"ssh-ed25519";
            let key = strings(&[name, &point]);
            let proof = strings(&[name, &[&point[..], &[0; 32]].concat()]);
            sshsig(&key, &proof)
        }),
        made("signature-small-order-r", "R is the neutral element, and S fits it", |signed| {
            ed25519::with_neutral_r(1, signed, true)
        }),
        made("signature-point-form", "R is the neutral element with a y of 2^255-18", |signed| {
            ed25519::with_neutral_r(1, signed, false)
        }),
        made("signature-key-form", "the key is the neutral element with a y of 2^255-18", |_| {
            ed25519::with_neutral_key()
        }),
        made("signature-scalar", "S is one group order larger, which is a second spelling", |signed| {
            let mut body = ONE.sign(signed);
            let at = body.len() - 32;
            add_order(&mut body[at..]);
            body
        }),
        {
            // A good signature does not make up for a broken one.
            let mut bundle = with_envelope(|signed| TWO.sign(&[signed, b"x"].concat()));
            bundle.signers = vec![ONE];
            vector("signature-one-broken", "signature", "a trusted signature beside a broken one", bundle.encode())
                .trust(trust([ONE.allowed("test"), TWO.allowed("test")]))
        },
    ]
}

/// Returns the encoding of a point of Ed25519 with this y and an even x.
fn of_y(y: u8) -> [u8; 32] {
    let mut point = [0; 32];
    point[0] = y;
    point
}

/// Returns the SSHSIG of key one under another Ed25519 key.
fn ed25519_of(point: &[u8], hash: &str, signed: &[u8]) -> Vec<u8> {
    let proof = ONE.prove(&data_to_sign(signed, &SshSig::default()), 0);
    sshsig_as(&strings(&[b"ssh-ed25519", point]), hash, &proof)
}

/// Returns the SSHSIG of the ECDSA key under another key of its type.
fn p256_of(curve: &[u8], point: &[u8], hash: &str, signed: &[u8]) -> Vec<u8> {
    let proof = Key::EcdsaP256.prove(&data_to_sign(signed, &SshSig::default()), 0);
    sshsig_as(&strings(&[b"ecdsa-sha2-nistp256", curve, point]), hash, &proof)
}

/// Returns the point of the ECDSA key.
fn p256_point() -> Vec<u8> {
    let blob = Key::EcdsaP256.blob();
    blob[blob.len() - 65..].to_vec()
}

/// Returns the same with another y, of which there is no point with that x.
fn off_curve() -> Vec<u8> {
    let mut point = p256_point();
    point[64] ^= 1;
    point
}

/// Returns the order of NIST P-256, as an mpint.
fn p256_order() -> Vec<u8> {
    mpint(&unhex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"))
}

/// Returns an SSHSIG by a key of a type that no version knows.
fn later() -> Vec<u8> {
    sshsig(&strings(&[b"ssh-later", b"key"]), &strings(&[b"ssh-later", b"signature"]))
}

/// Makes an SSHSIG for the signed bytes.
type MakeSignature = fn(&[u8]) -> Vec<u8>;

/// Signatures that this version cannot check: each alone, and beside a good one.
fn unknown() -> Vec<Vector> {
    let made: [(&str, u32, &str, MakeSignature); 12] = [
        ("signature-key-type", 1024, "a key of type ssh-later", |_| later()),
        ("signature-key-type-more", 1024, "a key of type ssh-later, with more behind all that is known of it", |_| {
            let [key, proof] = [&b"key"[..], b"signature"].map(|field| strings(&[b"ssh-later", field, b"more"]));
            sshsig_as(&key, "blake3", &[&proof[..], &[0]].concat())
        }),
        (
            "signature-key-type-bare",
            1024,
            "a key of type ssh-later that is nothing but its type, and empty strings",
            |_| sshsig_as(&strings(&[b"ssh-later"]), "", &strings(&[b"", b""])),
        ),
        ("signature-key-type-odd", 1024, "the key's type has bytes that no name has", |_| {
            sshsig(&strings(&["x\n\u{202e}; \"\u{1b}[2J".repeat(9).as_bytes()]), &strings(&[b"\xff", b"signature"]))
        }),
        ("signature-certificate", 1024, "a certificate as key", |signed| {
            let body = ONE.sign(signed);
            let key = [strings(&[b"ssh-ed25519-cert-v01@openssh.com", &[0; 32]]), ONE.blob()[15..].to_vec()].concat();
            let at = 10 + 4 + ONE.blob().len();
            [&body[..10], &strings(&[&key]), &body[at..]].concat()
        }),
        ("signature-rsa-short", 1024, "an RSA key of 2048 bits", |signed| Key::Rsa2048.sign(signed)),
        ("signature-rsa-under", 2048, "an RSA key of 3071 bits", |signed| {
            Rsa::made_for(signed, 3071, 3, true).sshsig()
        }),
        ("signature-rsa-over", 8192, "an RSA key of 16385 bits", |signed| {
            Rsa::made_for(signed, 16385, 3, true).sshsig()
        }),
        ("signature-rsa-short-even", 1024, "an RSA key of 2047 bits whose numbers are even", |_| {
            sshsig(&strings(&[b"ssh-rsa", &[2], &[0x7e; 256]]), &strings(&[b"rsa-sha2-512", b"signature"]))
        }),
        ("signature-rsa-sha1", 2048, "an RSA signature that names SHA-1", |signed| {
            let body = Key::Rsa3072.sign(signed);
            let (name, other) = (strings(&[b"rsa-sha2-512"]), strings(&[b"ssh-rsa"]));
            replace(&body, &name, &other, 5)
        }),
        ("signature-hash", 1024, "a hash that is not known", |signed| {
            ONE.sign_as(signed, &SshSig { hash: "blake3", ..SshSig::default() })
        }),
        ("signature-algorithm", 1024, "an Ed25519 key, and the algorithm of an RSA key", |signed| {
            let raw = ONE.sign(signed).split_off(ONE.sign(signed).len() - 64);
            sshsig(&ONE.blob(), &strings(&[b"rsa-sha2-512", &raw]))
        }),
    ];
    let vectors = made.into_iter().flat_map(|(name, area_len, comment, make)| {
        let [alone, beside] = [vec![], vec![TWO]].map(|signers| {
            let mut bundle = with_envelope(make);
            bundle.area_len = area_len;
            bundle.signers = signers;
            bundle
        });
        let listed = || trust([Key::Rsa3072.allowed("test"), ONE.allowed("test"), TWO.allowed("test")]);
        [
            vector(name, "untrusted", comment, alone.encode()).trust(listed()),
            accept(&format!("{name}-beside"), &format!("{comment}, beside a good signature"), beside).trust(listed()),
        ]
    });
    vectors.collect()
}

/// Replaces the name of an algorithm, and reduces the length of the signature blob that contains it by `shorter`.
fn replace(body: &[u8], name: &[u8], other: &[u8], shorter: u32) -> Vec<u8> {
    let at = body.windows(name.len()).position(|window| window == name).expect("the name is there");
    let len = u32::from_be_bytes([body[at - 4], body[at - 3], body[at - 2], body[at - 1]]) - shorter;
    [&body[..at - 4], &len.to_be_bytes(), other, &body[at + name.len()..]].concat()
}

/// Adds the order of Ed25519's group to a little-endian number of 32 bytes.
fn add_order(number: &mut [u8]) {
    const ORDER: [u8; 16] =
        [0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14];
    let mut carry = 0;
    for (at, byte) in number.iter_mut().enumerate() {
        let add = u16::from(ORDER.get(at).copied().unwrap_or(if at == 31 { 0x10 } else { 0 }));
        let sum = u16::from(*byte) + add + carry;
        *byte = sum.to_le_bytes()[0];
        carry = sum >> 8;
    }
}

fn judgement() -> Vec<Vector> {
    let judged = |name, kind, comment, bundle: Bundle, trust| vector(name, kind, comment, bundle.encode()).trust(trust);
    let signed = || small().signed_by(&[ONE]);
    let with = |change: fn(&mut Bundle)| {
        let mut bundle = signed();
        change(&mut bundle);
        bundle
    };
    let trusted = || trust([ONE.allowed("test")]);
    let no_namespace = trust([format!("test {}", ONE.line())]);
    let git = trust([format!("test namespaces=\"git\" {}", ONE.line())]);
    let window = |option: &str| trust([format!("test namespaces=\"sealift\",{option} {}", ONE.line())]);
    let both = || [ONE.allowed("test"), TWO.allowed("t*")];
    let two = |signers: Vec<String>| Trust { signers, threshold: Some(2), now: Some(NOW), ..Trust::default() };
    vec![
        accept("trust-ok", "signed by a trusted key", signed()).trust(trusted()),
        accept("trust-allow-unsigned-revoked", "a revoked key has signed, and unsigned is allowed", signed())
            .trust(Trust { allow_unsigned: true, revoked: vec![ONE.line()], ..trusted() }),
        judged("trust-unsigned", "untrusted", "nobody has signed", small(), trusted()),
        accept("trust-allow-unsigned", "nobody has signed, and that is allowed", small())
            .trust(Trust { allow_unsigned: true, ..trusted() }),
        judged(
            "trust-unknown-key",
            "untrusted",
            "signed by a key that is not listed",
            signed(),
            trust([TWO.allowed("*")]),
        ),
        judged(
            "trust-other-name",
            "untrusted",
            "the key may sign other names",
            signed(),
            trust([ONE.allowed("*,!test")]),
        ),
        judged(
            "trust-no-namespace",
            "untrusted",
            "the key's line does not grant the namespace",
            signed(),
            no_namespace,
        ),
        judged("trust-other-namespace", "untrusted", "the key's line grants the namespace git", signed(), git),
        judged(
            "trust-too-early",
            "untrusted",
            "the key counts from 2030",
            signed(),
            window("valid-after=\"20300101Z\""),
        ),
        judged(
            "trust-too-late",
            "untrusted",
            "the key counted to 2020",
            signed(),
            window("valid-before=\"20200101Z\""),
        ),
        accept("trust-first-second", "the key counts from this second", signed())
            .trust(window("valid-after=\"20270115080000Z\"")),
        accept("trust-last-second", "the key counts to this second", signed())
            .trust(window("valid-before=\"20270115080000Z\"")),
        judged("trust-threshold", "untrusted", "one key of two has signed", signed(), two(both().to_vec())),
        accept("trust-threshold-met", "both keys have signed", small().signed_by(&[ONE, TWO]))
            .trust(two(both().to_vec())),
        {
            let mut bundle =
                with_envelope(|signed| TWO.sign_as(signed, &SshSig { hash: "blake3", ..SshSig::default() }));
            bundle.signers = vec![ONE];
            judged(
                "trust-threshold-unknown",
                "untrusted",
                "one key of two has signed, and the other one over a hash that is not known",
                bundle,
                two(both().to_vec()),
            )
        },
        accept(
            "trust-allow-unsigned-unknown",
            "the only signature cannot be checked, and unsigned is allowed",
            with_envelope(|_| later()),
        )
        .trust(Trust { allow_unsigned: true, ..trusted() }),
        {
            let mut bundle = small().signed_by(&[ONE]);
            bundle
                .envelopes
                .push(Box::new(|signed| (1, ONE.sign_as(signed, &SshSig { hash: "sha256", ..SshSig::default() }))));
            let twice = two(vec![ONE.allowed("test"), ONE.allowed("t*")]);
            judged(
                "trust-threshold-same-key",
                "untrusted",
                "one key has signed twice and is listed twice",
                bundle,
                twice,
            )
        },
        judged(
            "trust-revoked",
            "revoked",
            "the key is revoked",
            signed(),
            Trust { revoked: vec![ONE.line()], ..trusted() },
        ),
        judged("trust-expired", "expired", "it expires in this second", with(|b| b.identity.expires = NOW), trusted()),
        accept("trust-not-expired", "it expires in a second", with(|b| b.identity.expires = NOW + 1)).trust(trusted()),
        judged(
            "trust-incompatible",
            "incompatible",
            "the device has another tag",
            with(|b| b.identity.tags = vec![b"board-a".to_vec(), b"board-b".to_vec()]),
            Trust { compatible: vec!["board-c".into()], ..trusted() },
        ),
        accept(
            "trust-compatible",
            "the device has one of the tags",
            with(|b| b.identity.tags = vec![b"board-a".to_vec(), b"board-b".to_vec()]),
        )
        .trust(Trust { compatible: vec!["board-b".into(), "board-c".into()], ..trusted() }),
        judged("trust-downgrade", "downgrade", "version 1 after 2", signed(), Trust { floor: Some(2), ..trusted() }),
        accept("trust-same-version", "version 1 after 1", signed()).trust(Trust { floor: Some(1), ..trusted() }),
    ]
}

/// Allowed signers in the forms that they may have.
fn lines() -> Vec<Vector> {
    let accepted = |name, comment, signers: Vec<String>| {
        accept(name, comment, small().signed_by(&[ONE])).trust(Trust { signers, now: Some(NOW), ..Trust::default() })
    };
    let line = |options: &str| format!("test {options} {}", ONE.line());
    let other = |options: &str, fields: &[&[u8]]| {
        let key_type = std::str::from_utf8(fields[0]).expect("text");
        format!("test {options}{key_type} {}", Base64::encode_string(&strings(fields)))
    };
    let granting = || ONE.allowed("test");
    vec![
        accepted(
            "trust-line-zone",
            "the letters of the time zones are small",
            vec![line("namespaces=\"sealift\",valid-after=\"20270115z\",valid-before=\"202701150800utc\"")],
        ),
        accepted(
            "trust-line-zone-mixed",
            "a time zone is written uTc, and the names of options in capitals",
            vec![line("NAMESPACES=\"sealift\",Valid-After=\"20270115080000uTc\"")],
        ),
        accepted(
            "trust-line-second",
            "the key counted from second 59 of a minute",
            vec![line("namespaces=\"sealift\",valid-after=\"20270115075959\"")],
        ),
        accepted(
            "trust-line-type",
            "lines that do not grant sealift have keys of a type that is not known",
            vec![granting(), other("", &[b"ssh-later", b"key"]), other("namespaces=\"git\" ", &[b"ssh-later", b"key"])],
        ),
        accepted(
            "trust-line-certificate",
            "a line that does not grant sealift has a certificate",
            vec![granting(), other("", &[b"ssh-ed25519-cert-v01@openssh.com", b"key"])],
        ),
        accepted(
            "trust-line-rsa-short",
            "lines that do not grant sealift have short RSA keys, one of them with even numbers",
            vec![
                granting(),
                format!("test {}", Key::Rsa2048.line()),
                other("namespaces=\"git\" ", &[b"ssh-rsa", &[2], &[0x7e; 256]]),
            ],
        ),
    ]
}
