//! Trust from the view of a device and a publisher, with the real ssh-keygen and ssh-agent.

mod editing;
mod generating;
mod judging;
mod kernel;
mod keyring;
mod killed;
mod places;
mod signing;
mod state;
