//! Trust as a device and a publisher meet it, with the real ssh-keygen and ssh-agent.

mod desk;
mod editing;
mod generating;
mod judging;
mod kernel;
mod killed;
mod places;
mod signing;
mod state;
