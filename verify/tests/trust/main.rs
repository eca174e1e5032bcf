//! Keys, signatures and trust files, of us and of OpenSSH.

#[cfg(feature = "sign")]
mod authenticator;
mod hostile;
#[cfg(feature = "sign")]
mod keygen;
#[cfg(feature = "sign")]
mod ssh_keygen;
