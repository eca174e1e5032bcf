//! `--key`: the publisher's keys, and asking for their passphrases.

use std::path::{Path, PathBuf};

use sealift::Error;
use sealift::trust::sign::{Signer, Zeroizing};

/// Opens every key, asking on the terminal for the passphrases that they have.
pub(crate) fn open(paths: &[PathBuf]) -> Result<Vec<Signer>, Error> {
    paths.iter().map(|path| Signer::open(path, &ask)).collect()
}

fn ask(path: &Path) -> Result<Zeroizing<String>, Error> {
    ask_for(&format!("Passphrase of {}: ", super::escape::text(&path.display().to_string()))).map_err(|source| {
        Error::Usage(format!(
            "{} has a passphrase, and no terminal to ask for it is there ({source}): load the key with ssh-add, and give its public \
             half, {}.pub",
            path.display(),
            path.display(),
        ))
    })
}

/// Asks on the terminal, whatever standard input is, and shows nothing of the answer.
pub(crate) fn ask_for(prompt: &str) -> std::io::Result<Zeroizing<String>> {
    rpassword::prompt_password(prompt).map(Zeroizing::new)
}
