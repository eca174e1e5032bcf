//! What a root states about its bundle.

/// The identity of a bundle, and when and where it may be used, as its root
/// states them. They are only claims until the signatures are checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// The name of what the bundle updates.
    pub name: String,
    /// A number that only rises.
    pub version: u64,
    /// When it was made, in seconds since 1970. A time in the future is not an
    /// error: the device's clock may be wrong.
    pub created: i64,
    /// The time from which it must not be used, in seconds since 1970.
    pub expires: Option<i64>,
    /// The tags of the devices that it is for; none means all.
    pub compatible: Vec<String>,
}
