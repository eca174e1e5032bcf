//! `a{sv}`: the metadata in a commit, and in a commitmeta.

use alloc::vec::Vec;

use super::Malformed;
use super::framing::{Elements, Shape, members, text};
use super::normal::{check, split_variant};
use crate::num;

/// Named values of any type, in normal form. Its bytes are all that it keeps: a list of a hundred thousand short entries would take more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dictionary<'a> {
    bytes: &'a [u8],
}

/// A value in normal form, of any type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value<'a> {
    type_string: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> Dictionary<'a> {
    /// Parses an `a{sv}`, such as a commitmeta object.
    ///
    /// # Errors
    /// Returns an error if it or a value in it is not in normal form, or if a key is repeated: readers would disagree on its value.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut elements = Elements::of(bytes, 8)?;
        let mut places: Vec<u32> = Vec::with_capacity(elements.len());
        while let Some(entry) = elements.next() {
            let entry = entry?;
            let [key, variant] = members(entry, [Shape::BYTES, Shape::VARIANT])?;
            text(key)?;
            check(b"v", variant)?;
            places.push(u32::try_from(elements.place() - entry.len()).map_err(|_| Malformed::new("it is too long"))?);
        }
        let key = |place: &u32| bytes[num::at(*place)..].split(|byte| *byte == 0).next();
        places.sort_unstable_by(|one, other| key(one).cmp(&key(other)));
        if places.windows(2).any(|pair| key(&pair[0]) == key(&pair[1])) {
            return Err(Malformed::new("a key is in a dictionary twice"));
        }
        Ok(Self { bytes })
    }

    /// Returns the bytes that were parsed.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns keys and values, in their order.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> + use<'a> {
        let entries = Elements::of(self.bytes, 8).into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let [key, variant] = members(entry, [Shape::BYTES, Shape::VARIANT]).ok()?;
            let (type_string, bytes) = split_variant(variant).ok()?;
            Some((text(key).ok()?, Value { type_string, bytes }))
        })
    }

    /// Returns the value of `key`, if there is one.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<Value<'a>> {
        self.entries().find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

impl<'a> Value<'a> {
    /// Returns its GVariant type string.
    #[must_use]
    pub fn type_string(&self) -> &'a [u8] {
        self.type_string
    }

    /// Returns its serialised form.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the text, if the type is `s`.
    #[must_use]
    pub fn text(&self) -> Option<&'a str> {
        if self.type_string == b"s" { text(self.bytes).ok() } else { None }
    }

    /// Returns the number, if the type is `t`. OSTree stores it with the highest byte first.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        if self.type_string == b"t" { self.bytes.try_into().ok().map(u64::from_be_bytes) } else { None }
    }

    /// Returns the texts, if the type is `as`.
    #[must_use]
    pub fn texts(&self) -> Option<impl Iterator<Item = &'a str> + use<'a>> {
        let elements = Elements::of(self.bytes, 1).ok().filter(|_| self.type_string == b"as")?;
        Some(elements.flatten().filter_map(|element| text(element).ok()))
    }

    /// Returns the byte strings, if the type is `aay`, like that of a list of signatures.
    #[must_use]
    pub fn byte_strings(&self) -> Option<Vec<&'a [u8]>> {
        let elements = Elements::of(self.bytes, 1).ok().filter(|_| self.type_string == b"aay")?;
        elements.collect::<Result<_, _>>().ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ostree::framing::Writer;

    fn dictionary(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut array = Writer::default();
        for (key, variant) in entries {
            let mut entry = Writer::default();
            entry.put_text(key);
            entry.put(Shape::VARIANT, variant);
            array.put(Shape::VARIANT, &entry.tuple());
        }
        array.array()
    }

    #[test]
    fn values() {
        let bytes = dictionary(&[("b", b"text\0\0s"), ("a", b"x\0y\0\x02\x04\0as"), ("c", b"\x01\x02\x01\x02\0aay")]);
        let parsed = Dictionary::parse(&bytes).expect("it is in normal form");
        assert_eq!(parsed.value("b").and_then(|value| value.text()), Some("text"));
        assert_eq!(parsed.value("b").and_then(|value| value.texts().map(Vec::from_iter)), None);
        let texts = parsed.value("a").and_then(|value| value.texts().map(Vec::from_iter));
        assert_eq!(texts, Some(["x", "y"].to_vec()));
        assert_eq!(parsed.value("c").and_then(|value| value.byte_strings()), Some([&b"\x01"[..], b"\x02"].to_vec()));
        assert_eq!(parsed.value("d"), None);
        assert_eq!(parsed.entries().count(), 3);
    }

    #[test]
    fn what_is_refused() {
        let twice = dictionary(&[("a", b"\x01\0y"), ("a", b"\x01\0y")]);
        assert_eq!(Dictionary::parse(&twice).expect_err("a key is twice").reason(), "a key is in a dictionary twice");
        assert!(Dictionary::parse(&dictionary(&[("a", b"\x02\0b")])).is_err());
        assert!(Dictionary::parse(&dictionary(&[("a", b"")])).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(prop_oneof![Just(0), 0..40_u8, any::<u8>()], 0..80)) {
            if let Ok(parsed) = Dictionary::parse(&bytes) {
                for (_, value) in parsed.entries() {
                    let _ = (value.text(), value.texts().map(Iterator::count), value.byte_strings());
                }
            }
        }
    }
}
