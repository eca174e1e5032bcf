//! Detached metadata of commits, built by hand.

/// Joins members, and appends where the first `ends` of them end: GVariant's form for values without a fixed size.
fn framed(members: &[&[u8]], ends: usize) -> Vec<u8> {
    let mut bytes = members.concat();
    let width = if bytes.len() + ends < 1 << 8 { 1 } else { 2 };
    assert!(bytes.len() + ends * width < 1 << 16, "an end has two bytes at most");
    let mut end = 0;
    for member in &members[..ends] {
        end += member.len();
        bytes.extend(&end.to_le_bytes()[..width]);
    }
    bytes
}

/// Returns an `a{sv}` with one key, whose value is a list.
pub(crate) fn commitmeta(key: &str, kind: &[u8], list: &[&[u8]]) -> Vec<u8> {
    let value = [&framed(list, list.len()), &b"\0"[..], kind].concat();
    let key = [key.as_bytes(), b"\0"].concat();
    let padding = vec![0; key.len().next_multiple_of(8) - key.len()];
    // The key ends before the padding.
    let entry = framed(&[&key, &padding, &value], 1);
    framed(&[&entry], 1)
}
