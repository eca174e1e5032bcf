//! Keys, signatures and trust files, of us and of OpenSSH.

#[cfg(feature = "sign")]
mod authenticator;
#[cfg(feature = "sign")]
mod desk;
mod hostile;
#[cfg(feature = "sign")]
mod ssh_keygen;
