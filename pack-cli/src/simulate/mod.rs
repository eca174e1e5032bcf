//! Simulates how long a device takes to read the files of an order profile, as a bundle lays them out and in other orders.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/bundle.rs"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = signed_bundle()?;
//! # let bundle = folder.path().join("os.sealift");
//! use sealift::order::OrderProfile;
//! use sealift::simulate::{SimulatedDevice, simulate};
//! use sealift::{Bases, Input, Limits};
//!
//! let bundle = Input::open(&bundle)?.open_bundle(Limits::default())?;
//! let profile = OrderProfile::parse(b"etc/os-release\n")?;
//! let device = SimulatedDevice::of("dvd").expect("a kind of device");
//! let found = simulate(&bundle, &Bases::default(), &profile, &device)?;
//! assert_eq!(found.matched, 1);
//! assert!(found.as_laid_out.seconds >= found.sweep.seconds);
//! # Ok(())
//! # }
//! ```

mod arrangement;
mod device;
mod picture;
mod run;
mod trace;

use sealift_format::Bundle;
use sealift_store::base::Bases;

use crate::Error;
use crate::order::OrderProfile;
use arrangement::{Placed, by_hash, by_path, end_of, least_bytes, reads};
pub use device::{Parameter, SimulatedDevice};
pub use picture::write_picture;
pub use run::{Run, Stroke};
use trace::Trace;

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Simulation {
    /// Paths of the profile.
    pub paths: usize,
    /// Paths that name a regular file of the bundle.
    pub matched: usize,
    /// Distinct contents of these files that the bundle carries.
    pub objects: usize,
    /// Distinct contents that only a base of the delta has, and that base is a bundle.
    pub of_base: usize,
    /// Distinct contents that only a base of the delta has, and that base is not a bundle: they are not on the device.
    pub not_read: usize,
    /// Bytes of the bundle's file, and of the files of its bases after it.
    pub file_bytes: u64,
    /// As the bundle lays them out.
    pub as_laid_out: Run,
    /// As packing without a profile lays them out: by path, in chunks that end where packing ends them.
    pub by_path: Run,
    /// The same, in the order of the contents' hashes.
    pub by_hash: Run,
    /// These contents alone, in one uninterrupted read at the bundle's start. An order can only take less if the device is faster elsewhere, as a
    /// disc is at its edge.
    pub sweep: Run,
}

impl Simulation {
    /// Returns the orders with their names.
    #[must_use]
    pub fn orders(&self) -> [(&'static str, &Run); 4] {
        let Self { as_laid_out, by_path, by_hash, sweep, .. } = self;
        [("as laid out", as_laid_out), ("by path", by_path), ("by hash", by_hash), ("one sweep", sweep)]
    }
}

/// Simulates reading the files of a profile, in its order, from a bundle on a device. Head, layout and index are read first, then each chunk when
/// the first of its files is read. At first, the device's head is at the bundle's start.
///
/// Bases of a delta that are bundles lie after the delta, as they are laid out. After each chunk, the parts of them that it needs are read. What
/// other bases hold is not read from the device.
///
/// # Errors
/// Returns an error if the bundle does not fit on the device with its bases, or if they lack an object.
pub fn simulate(
    bundle: &Bundle,
    bases: &Bases,
    profile: &OrderProfile,
    device: &SimulatedDevice,
) -> Result<Simulation, Error> {
    let bundles = Placed::all(std::iter::once(bundle).chain(bases.bundles().flatten().map(|base| &base.bundle)));
    let (model, file_bytes) = (device.model(), end_of(&bundles));
    if model.place + run::real(file_bytes) > model.capacity {
        let files = if bundles.len() > 1 { "the bundle with its bases" } else { "the bundle" };
        return Err(Error::Usage(format!(
            "{files}, {file_bytes} bytes, does not fit on a device with capacity_bytes={} and place_bytes={}",
            model.capacity, model.place
        )));
    }
    let trace = Trace::of(bundle, bases, profile)?;
    let run = |order: Option<Vec<_>>| {
        let order = order.map(|order| bundles[0].in_order(&order));
        run::run(&model, &reads(&bundles, order.as_ref(), &trace.wanted))
    };
    Ok(Simulation {
        paths: trace.paths,
        matched: trace.matched,
        objects: trace.objects,
        of_base: trace.of_base,
        not_read: trace.not_read,
        file_bytes,
        as_laid_out: run(None),
        by_path: run(Some(by_path(bundle))),
        by_hash: run(Some(by_hash(bundle))),
        sweep: run::sweep(&model, least_bytes(&bundles, &trace.wanted)),
    })
}
