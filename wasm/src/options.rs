//! The options of `judge`. A wrong type or name is an error: ignoring it would change the policy.

use std::collections::BTreeSet;

use js_sys::{Array, Date, Object, Reflect, Uint8Array};
use sealift_verify::trust::{
    AllowedSigners, Device, FloorRecord, Floors, Now, Policy, RevocationList, Thresholds, TrustFileError,
};
use wasm_bindgen::{JsCast as _, JsValue};

use crate::error::{misuse, unusable};
use crate::number::integer;

const NAMES: [&str; 7] = ["now", "threshold", "compatible", "revoked", "floor", "allowUnsigned", "allowDowngrade"];

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
    if let Some(tags) = options.strings("compatible")? {
        policy.device = Device::with_tags(tags);
    }
    policy.floors = Floors::new(options.floor()?.into_iter().collect());
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

    /// Returns the value of an option, if present; a wrong value gives an error that states the expected one.
    fn read<T>(&self, name: &str, what: &str, read: impl Fn(&JsValue) -> Option<T>) -> Result<Option<T>, JsValue> {
        if self.0.is_undefined() {
            return Ok(None);
        }
        let value = Reflect::get(self.0, &name.into())?;
        if value.is_undefined() {
            return Ok(None);
        }
        read(&value).map(Some).ok_or_else(|| misuse(&format!("the option {name} is not {what}")))
    }

    fn now(&self) -> Result<Now, JsValue> {
        let given = self.read("now", "whole seconds since 1970", |value| integer(value.as_f64()?))?;
        let clock = || integer((Date::now() / 1000.0).floor());
        Ok(given.map_or_else(|| Now::latest(clock(), None, 0), Now::exactly))
    }

    fn threshold(&self) -> Result<Option<Vec<String>>, JsValue> {
        self.read("threshold", "a whole number, or an array of rules N and PATTERN=N", |value| {
            let number = value.as_f64().and_then(integer).map(|number| vec![number.to_string()]);
            number.or_else(|| strings(value))
        })
    }

    fn revoked(&self) -> Result<Option<Vec<u8>>, JsValue> {
        self.read("revoked", "a string or a Uint8Array", |value| {
            let bytes = value.dyn_ref::<Uint8Array>().map(Uint8Array::to_vec);
            bytes.or_else(|| value.as_string().map(String::into_bytes))
        })
    }

    /// Returns the floor. A version is a u64, passed as decimal digits.
    fn floor(&self) -> Result<Option<FloorRecord>, JsValue> {
        let version = self.read("floor", "a version as a string of digits", |value| value.as_string()?.parse().ok())?;
        Ok(version.map(|version| FloorRecord { version, created: 0, keys: BTreeSet::new() }))
    }

    fn flag(&self, name: &str) -> Result<bool, JsValue> {
        Ok(self.read(name, "true or false", JsValue::as_bool)?.unwrap_or(false))
    }

    fn strings(&self, name: &str) -> Result<Option<Vec<String>>, JsValue> {
        self.read(name, "an array of strings", strings)
    }
}

fn strings(value: &JsValue) -> Option<Vec<String>> {
    value.dyn_ref::<Array>()?.iter().map(|item| item.as_string()).collect()
}
