//! A remote's settings: a section `[remote "NAME"]` of the repository's config, or of a file in the system's folder of remotes.

use super::keyfile::{self, KeyFile};
use crate::error::RepoFault;

/// A remote with its raw settings. They are interpreted when the remote is used, so that a mistake in one does not disable the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remote {
    pub(crate) name: String,
    /// The collection that its refs belong to, if any. It is not validated.
    pub(crate) collection_id: Option<String>,
    settings: Vec<(String, String)>,
}

impl Remote {
    /// Returns the remotes of a file, in file order.
    pub(crate) fn all(file: &KeyFile<'_>) -> Vec<Self> {
        let mut remotes: Vec<Self> = Vec::new();
        for (section, key, value) in &file.entries {
            let name = section.strip_prefix("remote \"").and_then(|rest| rest.strip_suffix('"'));
            let Some(name) = name.filter(|name| !name.is_empty()) else { continue };
            let at = remotes.iter().position(|remote| remote.name == name).unwrap_or_else(|| {
                remotes.push(Self { name: name.to_owned(), collection_id: None, settings: Vec::new() });
                remotes.len() - 1
            });
            if *key == "collection-id" {
                let id = keyfile::text(value).unwrap_or_else(|| (*value).to_owned());
                remotes[at].collection_id = Some(id).filter(|id| !id.is_empty());
            }
            remotes[at].settings.push(((*key).to_owned(), (*value).to_owned()));
        }
        remotes
    }

    /// Returns the raw value.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        self.settings.iter().rev().find(|setting| setting.0 == key).map(|setting| &*setting.1)
    }

    /// Returns a boolean setting.
    ///
    /// # Errors
    /// Returns an error if it is not a boolean.
    pub(crate) fn boolean(&self, key: &'static str, default: bool) -> Result<bool, RepoFault> {
        let Some(value) = self.value(key) else { return Ok(default) };
        keyfile::boolean(value).ok_or_else(|| self.senseless(key, value))
    }

    /// Returns a string setting.
    ///
    /// # Errors
    /// Returns an error if it has an escape that GLib does not know.
    pub(crate) fn text(&self, key: &'static str) -> Result<Option<String>, RepoFault> {
        let text = |value| keyfile::text(value).ok_or_else(|| self.senseless(key, value));
        self.value(key).map(text).transpose()
    }

    /// Returns a list setting.
    pub(crate) fn texts(&self, key: &'static str, separator: char) -> Result<Vec<String>, RepoFault> {
        let value = self.value(key).unwrap_or_default();
        keyfile::texts(value, separator).ok_or_else(|| self.senseless(key, value))
    }

    fn senseless(&self, key: &'static str, value: &str) -> RepoFault {
        self.fault(format!("{key} = {value:?} is not a valid value"))
    }

    /// Returns the fault of a remote that cannot be used.
    pub(crate) fn fault(&self, why: String) -> RepoFault {
        RepoFault::Remote { remote: self.name.clone(), why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings() {
        let text = "[core]\nx=1\n[remote \"os\"]\ngpg-verify=maybe\ncollection-id=one\nurl=a\\sb\nkinds=a;b\n\
            [remote \"\"]\n[remote \"other\"]\n[remote \"os\"]\nurl=c\n";
        let remotes = Remote::all(&KeyFile::parse(text).expect("it is one"));
        let [os, other] = &remotes[..] else { panic!("there are two remotes") };
        assert_eq!((&*os.name, os.text("url").expect("a text").as_deref()), ("os", Some("c")));
        assert_eq!(os.texts("kinds", ';').expect("a list"), ["a", "b"]);
        let said = os.boolean("gpg-verify", true).expect_err("it is neither").to_string();
        assert_eq!(said, "remote \"os\" is misconfigured: gpg-verify = \"maybe\" is not a valid value");
        assert_eq!((os.collection_id.as_deref(), other.collection_id.as_deref()), (Some("one"), None));
        assert!(other.boolean("gpg-verify", true).expect("the default"));
    }
}
