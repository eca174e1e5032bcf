//! Recovery files: made from a bundle, they make its damaged bytes again (recovery.md).
//!
//! ```no_run
//! # fn main() -> Result<(), sealift::Error> {
//! # use std::path::Path;
//! use sealift::recovery::{MakeOptions, RepairOptions, make, repair};
//! use sealift::{Input, Limits, Progress};
//!
//! let (bundle, recovery) = (Path::new("os.sealift"), ["os.recovery".into()]);
//! let options = MakeOptions { percent: 5, replaces: false, jobs: 2, limits: Limits::default() };
//! make(Input::open(bundle)?, &recovery, &options, &Progress::default())?;
//!
//! // Later, if the bundle has bad sectors:
//! let options = RepairOptions { replaces: false, jobs: 2, limits: Limits::default() };
//! let done = repair(bundle, &recovery, Path::new("good.sealift"), &options, &Progress::default())?;
//! println!("{} bytes made again", done.repaired_bytes);
//! # Ok(())
//! # }
//! ```

mod alone;
mod body;
mod code;
mod file;
mod make;
mod readable;
mod repair;
mod repair_volumes;
mod set;
mod volumes;
mod written;

pub use alone::LoneRecovery;
pub(crate) use make::write_all;
pub use make::{MakeOptions, MakeStats, make};
pub use repair::{RepairOptions, RepairStats, repair};
pub use repair_volumes::{RepairVolumesStats, RepairedVolume, repair_volumes};
pub use sealift_format::{Geometry, Recovery};
pub use set::are_volumes;
pub use volumes::Amount;
pub(crate) use volumes::plan;
