//! The parameters of fs-verity, with the option names of `fsverity`.

use clap::Args;
use sealift::seal::{Algorithm, Parameters};
use sealift_format::unhex;

use super::failure::Failure;
use super::human;
use super::one_of::one_of;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Parameters")]
pub(crate) struct VerityArgs {
    /// Hash algorithm: sha256, which Sealift uses, or sha512
    #[arg(long, value_name = "HASH", value_parser = one_of(HASHES), default_value = "sha256", hide_possible_values = true)]
    hash_alg: Algorithm,
    /// Block size, a power of two; all kernels support 4096, newer ones from 1024 to the page size
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = parse_len)]
    block_size: u32,
    /// Salt of up to 32 bytes, in hexadecimal digits
    #[arg(long, value_name = "HEX", value_parser = parse_salt)]
    salt: Option<Salt>,
}

/// The hash algorithms by name.
pub(crate) const HASHES: [(&str, Algorithm); 2] = [("sha256", Algorithm::Sha256), ("sha512", Algorithm::Sha512)];

#[derive(Clone, Debug)]
struct Salt(Vec<u8>);

impl VerityArgs {
    pub(crate) fn parameters(&self) -> Result<Parameters, Failure> {
        let salt = self.salt.as_ref().map_or(&[][..], |salt| &salt.0);
        Parameters::new(self.hash_alg, self.block_size, salt).map_err(|error| Failure::usage(error.to_string()))
    }
}

fn parse_len(text: &str) -> Result<u32, String> {
    u32::try_from(human::parse_size(text)?).map_err(|_| "the size is too large".into())
}

fn parse_salt(text: &str) -> Result<Salt, String> {
    unhex(text).map(Salt).ok_or_else(|| "write two hexadecimal digits per byte".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn salts_are_whole_bytes() {
        assert_eq!(parse_salt("0aFf").map(|salt| salt.0), Ok(vec![10, 255]));
        assert_eq!(parse_salt("").map(|salt| salt.0), Ok(vec![]));
        for bad in ["0", "0x", "+1", "00 0", "\u{e4}"] {
            assert!(parse_salt(bad).is_err(), "{bad}");
        }
    }
}
