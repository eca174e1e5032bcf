//! The state of the plugin: first parameters, then an open bundle, then a reader that serves every connection.

use std::ffi::OsStr;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use sealift::in_place::{Fault, ReadOptions};
use sealift::trust::Guard;
use sealift::{Input, Limits};

use crate::calls::{note, tell};
use crate::parameters::Parameters;
use crate::served::{Opened, Served, warnings};

static PARAMETERS: Mutex<Option<Parameters>> = Mutex::new(None);
/// The open bundle, until threads can be started: nbdkit first forks to go into the background.
static READY: Mutex<Option<Ready>> = Mutex::new(None);
static SERVED: RwLock<Option<Arc<Served>>> = RwLock::new(None);

struct Ready {
    opened: Opened,
    options: ReadOptions,
    name: String,
}

/// Sets a parameter.
///
/// # Errors
/// Returns an error if it is unknown, or if its value is invalid.
pub(crate) fn set(key: &str, value: &OsStr) -> Result<(), String> {
    PARAMETERS.lock().get_or_insert_default().set(key, value)
}

/// Checks that no parameter is missing.
///
/// # Errors
/// Returns an error if no bundle was named.
pub(crate) fn check() -> Result<(), String> {
    PARAMETERS.lock().get_or_insert_default().bundle().map(drop)
}

/// Judges and opens the bundle, while nbdkit can still exit with a message and a status on an error.
///
/// # Errors
/// Returns an error if the bundle is refused, damaged or cannot be read, or if there is no such file in it.
pub(crate) fn open() -> Result<(), String> {
    let parameters = PARAMETERS.lock().take().unwrap_or_default();
    let (bundle, bases) = parameters.bundle()?;
    let name = shown(bundle);
    let about = |error: sealift::Error| format!("{name}: {error}");
    let guard = Guard::load(&parameters.trust).map_err(|error| error.to_string())?;
    let admitted = Input::open(bundle).and_then(|input| guard.admit(input, Limits::default())).map_err(about)?;
    warnings(&guard, &admitted).iter().for_each(|warning| tell(&format!("warning: {name}: {warning}")));
    for signer in &admitted.judged().verdict.signers {
        note(&format!("{name}: signed by {} {}", signer.key, signer.comment));
    }
    let opened = Opened::open(admitted, &bases, parameters.path.as_deref());
    let opened = opened.map_err(|error| format!("{name}: {error}"))?;
    *READY.lock() = Some(Ready { opened, options: parameters.read(), name });
    Ok(())
}

/// Starts the threads that read, in the process that serves connections.
pub(crate) fn start() -> Result<(), String> {
    let Ready { opened, options, name } = READY.lock().take().ok_or("no bundle is open")?;
    let report = move |fault: &Fault| tell(&format!("{name}: {fault}"));
    *SERVED.write() = Some(Arc::new(opened.start(&options, Box::new(report))?));
    Ok(())
}

/// Ends the threads.
pub(crate) fn stop() {
    SERVED.write().take();
}

/// Returns the size of the served file in bytes.
pub(crate) fn len() -> Option<i64> {
    served().and_then(|served| served.len.try_into().ok())
}

/// Passes `count` bytes from `offset` on to `give`. Returns whether they could be read; if not, the fault was reported.
pub(crate) fn read(offset: u64, count: u32, give: &mut dyn FnMut(&[u8])) -> bool {
    served().is_some_and(|served| served.read(range(offset, count), give))
}

/// Passes the parts of a range to `give`, each with whether it is data or a hole, until `give` returns false.
pub(crate) fn extents(offset: u64, count: u32, give: &mut dyn FnMut(Range<u64>, bool) -> bool) {
    if let Some(served) = served() {
        served.extents(range(offset, count), give);
    }
}

fn served() -> Option<Arc<Served>> {
    SERVED.read().clone()
}

fn range(offset: u64, count: u32) -> Range<u64> {
    offset..offset.saturating_add(count.into())
}

/// Returns the name of a file for messages, as `sealift` shows it: without its directory.
fn shown(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.display().to_string())
}
