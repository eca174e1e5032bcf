//! A request to ssh-agent (draft-ietf-sshm-ssh-agent) and its response.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use sealift_format::num;
use sealift_verify::trust::{KeyType, PublicKey};

const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;
const FAILURE: u8 = 5;
/// Without this flag RSA keys sign with SHA-1, which is no longer accepted anywhere.
const RSA_SHA2_512: u32 = 4;
/// OpenSSH's own limit on a message.
const MESSAGE_LEN: u32 = 256 * 1024;

/// Asks the agent at `socket` to sign `data`, and returns the SSH signature blob. Waits as long as the agent waits for its user's touch or
/// confirmation.
///
/// # Errors
/// Returns a message that says what is wrong.
pub(super) fn sign(socket: &Path, key: &PublicKey, data: &[u8]) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("cannot talk to it at {}: {error}", socket.display());
    let mut stream = UnixStream::connect(socket).map_err(failed)?;
    stream.write_all(&request(key, data)).map_err(failed)?;
    let mut len = [0; 4];
    stream.read_exact(&mut len).map_err(failed)?;
    let len = u32::from_be_bytes(len);
    if len > MESSAGE_LEN {
        return Err(format!("its answer of {len} bytes is too long"));
    }
    let mut answer = vec![0; num::at(len)];
    stream.read_exact(&mut answer).map_err(failed)?;
    match answer.split_first() {
        Some((&SIGN_RESPONSE, body)) => signature(body).ok_or_else(|| "its answer is malformed".to_owned()),
        Some((&FAILURE, _)) => Err(format!("it does not have the key {} or was not allowed to use it", key.id())),
        _ => Err("its answer is not a signature".to_owned()),
    }
}

fn request(key: &PublicKey, data: &[u8]) -> Vec<u8> {
    let flags = if key.key_type() == KeyType::Rsa { RSA_SHA2_512 } else { 0 };
    let mut body = vec![SIGN_REQUEST];
    put_string(&mut body, key.blob());
    put_string(&mut body, data);
    body.extend(flags.to_be_bytes());
    let mut message = Vec::new();
    put_string(&mut message, &body);
    message
}

fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(u32::try_from(bytes.len()).expect("keys and digests are short").to_be_bytes());
    out.extend(bytes);
}

/// Returns the only string in the body of a response.
fn signature(body: &[u8]) -> Option<Vec<u8>> {
    let (len, signature) = body.split_first_chunk::<4>()?;
    let len = usize::try_from(u32::from_be_bytes(*len)).ok()?;
    (signature.len() == len).then(|| signature.to_vec())
}
