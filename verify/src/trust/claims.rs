//! What a signed root says about its bundle.

/// Identity and policy of a bundle, as its root states them. Only the
/// signatures make them more than a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// What the bundle updates.
    pub name: String,
    /// A number that only rises.
    pub version: u64,
    /// When it was made, in seconds since 1970. A moment in the future is no
    /// error: the device's clock may be the wrong one.
    pub created: i64,
    /// From when on it must not be used, in seconds since 1970.
    pub expires: Option<i64>,
    /// What devices it fits; none means all.
    pub compatible: Vec<String>,
}
