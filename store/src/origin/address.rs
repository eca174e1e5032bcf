//! Addresses, without the secrets that may be in them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use parking_lot::Mutex;

/// What is shown in the place of a secret.
const HIDDEN: &str = "***";

/// The full addresses of those that are shown without their secrets.
static SECRETS: OnceLock<Mutex<HashMap<String, String>>> = OnceLock::new();

/// Returns whether a path is an address of http or https.
#[must_use]
pub fn is_address(path: &Path) -> bool {
    path.to_str().is_some_and(|text| scheme_of(text).is_some())
}

fn scheme_of(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    ["http", "https"].into_iter().find(|known| scheme.eq_ignore_ascii_case(known))
}

/// Returns an address without user, password and query, as it is shown and passed on. What was left out is kept in this process, and used for requests
/// alone. Anything else is returned as it is.
#[must_use]
pub fn without_secrets(path: &Path) -> PathBuf {
    let Some(text) = path.to_str().filter(|text| scheme_of(text).is_some()) else { return path.to_owned() };
    let shown = shown(text);
    if shown != text {
        SECRETS.get_or_init(Mutex::default).lock().insert(shown.clone(), text.to_owned());
    }
    shown.into()
}

/// Returns the address for requests.
pub(super) fn with_secrets(path: &str) -> String {
    let kept = SECRETS.get().and_then(|secrets| secrets.lock().get(path).cloned());
    kept.unwrap_or_else(|| path.to_owned())
}

/// Returns the address of a file in the directory at an address, with the same query.
#[must_use]
pub fn address_beside(directory: &Path, file: &str) -> PathBuf {
    let text = directory.to_string_lossy();
    let full = with_secrets(&text);
    let (place, query) = full.split_once('?').map_or((&*full, None), |(place, query)| (place, Some(query)));
    let joined = format!("{}/{file}", place.trim_end_matches('/'));
    without_secrets(Path::new(&query.map_or(joined.clone(), |query| format!("{joined}?{query}"))))
}

fn shown(text: &str) -> String {
    let text = text.split('#').next().unwrap_or(text);
    let (place, query) = text.split_once('?').map_or((text, None), |(place, query)| (place, Some(query)));
    let (scheme, rest) = place.split_once("://").unwrap_or((place, ""));
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let user = user.map_or(String::new(), |_| format!("{HIDDEN}@"));
    let query = query.map_or(String::new(), |_| format!("?{HIDDEN}"));
    format!("{scheme}://{user}{host}{path}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let cases = [
            ("https://me:secret@example.org/os.sealift", "https://***@example.org/os.sealift"),
            ("https://a@b:secret@example.org", "https://***@example.org"),
            ("https://example.org/os/?token=secret", "https://example.org/os/?***"),
            ("http://u@[::1]:80/a?b?c#d", "http://***@[::1]:80/a?***"),
            ("HTTPS://example.org/x", "HTTPS://example.org/x"),
        ];
        for (full, wanted) in cases {
            let shown = without_secrets(Path::new(full));
            assert_eq!(shown, Path::new(wanted));
            assert_eq!(
                with_secrets(wanted),
                full.split('#').next().unwrap_or_default().to_owned() + if full.contains('#') { "#d" } else { "" }
            );
        }
        assert_eq!(without_secrets(Path::new("dir/a@b?c")), Path::new("dir/a@b?c"));
        let list = address_beside(Path::new("https://example.org/os/?***"), "a.sealift");
        assert_eq!(list, Path::new("https://example.org/os/a.sealift?***"));
        assert_eq!(
            with_secrets("https://example.org/os/a.sealift?***"),
            "https://example.org/os/a.sealift?token=secret"
        );
        assert!(!is_address(Path::new("http:/x")) && is_address(Path::new("http://x")));
    }
}
