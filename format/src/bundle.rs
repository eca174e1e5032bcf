//! A bundle that has been read but for its chunks (core 2).

use crate::{Head, Index, Layout};

/// A bundle whose head, layout and index have been read. That its root is trusted is for somebody else to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// Preamble, root and envelopes.
    pub head: Head,
    /// Where each object lies.
    pub layout: Layout,
    /// What is installed.
    pub index: Index,
}
