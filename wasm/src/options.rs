//! The options of `judge`. A wrong type or name is an error: ignoring it would change the policy.

use js_sys::{Array, Date, Object, Reflect, Uint8Array};
use sealift_format::name::is_bundle_name;
use sealift_verify::trust::{
    AllowedSigners, Device, FloorRecord, Floors, LineError, Now, Policy, RevocationList, Thresholds, TrustFileError,
};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast as _, JsValue};

use crate::error::{misuse, unusable};
use crate::number::integer;

const NAMES: [&str; 7] = ["now", "threshold", "compatible", "revoked", "floor", "allowUnsigned", "allowDowngrade"];

/// Reads a policy as `judge` does, without a bundle.
///
/// # Errors
/// Returns the error that `judge` would return: that an option or a file is malformed.
#[wasm_bindgen(js_name = checkPolicy)]
pub fn check(
    #[wasm_bindgen(js_name = allowedSigners)] allowed_signers: &str,
    #[wasm_bindgen(unchecked_param_type = "JudgeOptions")] options: &JsValue,
) -> Result<(), JsValue> {
    policy(allowed_signers, options).map(drop)
}

/// Returns the policy given by the allowed signers and the options.
pub(crate) fn policy(allowed_signers: &str, options: &JsValue) -> Result<Policy, JsValue> {
    let options = Options::new(options)?;
    let bad_file = |error: TrustFileError| unusable(&error);
    let mut policy = Policy::at(options.now()?);
    policy.signers = Some(AllowedSigners::parse(allowed_signers.as_bytes()).map_err(bad_file)?);
    if let Some(list) = options.revoked()? {
        policy.revoked = RevocationList::parse(&list).map_err(bad_file)?;
    }
    if let Some(rules) = options.threshold()? {
        policy.thresholds = Thresholds::parse(rules.iter().map(String::as_str)).map_err(bad_file)?;
    }
    if let Some(tags) = options.compatible()? {
        // Each is a line of the program's file.
        for (tag, line) in tags.iter().zip(1..) {
            if !is_bundle_name(tag) {
                return Err(unusable(&TrustFileError::Tags { line, problem: LineError::Tag(tag.clone()) }));
            }
        }
        policy.device = Device::with_tags(tags);
    }
    policy.floors = Floors::new(options.floors()?);
    policy.allow_unsigned = options.flag("allowUnsigned")?;
    policy.allow_downgrade = options.flag("allowDowngrade")?;
    Ok(policy)
}

fn names() -> String {
    let mut names = String::new();
    for name in NAMES {
        names.push_str(if names.is_empty() { "" } else { ", " });
        names.push_str(name);
    }
    names
}

struct Options<'a>(&'a JsValue);

impl<'a> Options<'a> {
    fn new(options: &'a JsValue) -> Result<Self, JsValue> {
        if let Some(object) = options.dyn_ref::<Object>() {
            for name in Object::keys(object).iter().filter_map(|name| name.as_string()) {
                if !NAMES.contains(&name.as_str()) {
                    return Err(misuse(&format!("there is no option {name:?}; the options are {}", names())));
                }
            }
        } else if !options.is_undefined() {
            return Err(misuse("the options are not an object"));
        }
        Ok(Self(options))
    }

    /// Returns the value of an option, if present.
    fn get(&self, name: &str) -> Result<Option<JsValue>, JsValue> {
        if self.0.is_undefined() {
            return Ok(None);
        }
        let value = Reflect::get(self.0, &name.into())?;
        Ok((!value.is_undefined()).then_some(value))
    }

    fn now(&self) -> Result<Now, JsValue> {
        let Some(given) = self.get("now")? else {
            return Ok(Now::latest(integer((Date::now() / 1000.0).floor()), None, 0));
        };
        let now = given.as_f64().and_then(integer);
        Ok(Now::exactly(now.ok_or_else(|| wrong("now", "whole seconds since 1970"))?))
    }

    fn threshold(&self) -> Result<Option<Vec<String>>, JsValue> {
        let Some(given) = self.get("threshold")? else { return Ok(None) };
        let rules = match given.as_f64() {
            Some(number) => integer(number).map(|number| vec![number.to_string()]),
            None => strings(&given),
        };
        rules.map(Some).ok_or_else(|| wrong("threshold", "a whole number, or an array of rules N and PATTERN=N"))
    }

    fn revoked(&self) -> Result<Option<Vec<u8>>, JsValue> {
        let Some(given) = self.get("revoked")? else { return Ok(None) };
        let bytes = match given.dyn_ref::<Uint8Array>() {
            Some(bytes) => Some(bytes.to_vec()),
            None => given.as_string().map(String::into_bytes),
        };
        bytes.map(Some).ok_or_else(|| wrong("revoked", "a string or a Uint8Array"))
    }

    fn compatible(&self) -> Result<Option<Vec<String>>, JsValue> {
        let Some(given) = self.get("compatible")? else { return Ok(None) };
        strings(&given).map(Some).ok_or_else(|| wrong("compatible", "an array of strings"))
    }

    /// Returns the floors: one, or an array of them.
    fn floors(&self) -> Result<Vec<FloorRecord>, JsValue> {
        let Some(given) = self.get("floor")? else { return Ok(Vec::new()) };
        let several = given.dyn_ref().cloned().unwrap_or_else(|| Array::of1(&given));
        let what = "a version as a string of digits, an object with `version` and `keys`, or an array of these";
        let mut floors = Vec::new();
        for one in several.iter() {
            floors.push(floor(&one).ok_or_else(|| wrong("floor", what))?);
        }
        Ok(floors)
    }

    fn flag(&self, name: &str) -> Result<bool, JsValue> {
        let Some(given) = self.get(name)? else { return Ok(false) };
        given.as_bool().ok_or_else(|| wrong(name, "true or false"))
    }
}

/// Returns an error for an option of another type, which states the expected one.
fn wrong(name: &str, what: &str) -> JsValue {
    misuse(&format!("the option {name} is not {what}"))
}

fn strings(value: &JsValue) -> Option<Vec<String>> {
    value.dyn_ref::<Array>()?.iter().map(|item| item.as_string()).collect()
}

/// Returns a floor. A version is a u64, passed as decimal digits.
fn floor(value: &JsValue) -> Option<FloorRecord> {
    let mut keys = Vec::new();
    let version = if value.is_string() {
        value.as_string()
    } else {
        let of = |name: &str| Reflect::get(value, &name.into()).ok();
        for key in strings(&of("keys")?)? {
            keys.push(key.parse().ok()?);
        }
        keys.sort_unstable();
        keys.dedup();
        of("version")?.as_string()
    };
    Some(FloorRecord { version: version?.parse().ok()?, created: 0, keys })
}
