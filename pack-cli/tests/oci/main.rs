//! Container images: OCI layouts and docker archives as sources and as targets, with skopeo and podman.
#![allow(clippy::unwrap_used, reason = "tests")]

mod archives;
mod desk;
mod hostile;
mod layouts;
mod podman;
mod skopeo;
mod targets;
mod updates;
