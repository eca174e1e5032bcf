//! What a verb reads: a bundle, a full bundle with the deltas that lead from it to a newer version, or the newest version of a channel.

use std::path::{Path, PathBuf};

use sealift::by_set;
use sealift::channel::{Chain, Channel};
use sealift::trust::Guard;

use super::base_args::BaseArgs;
use super::bundle::BundleArg;
use super::failure::{About as _, Failure};
use super::limits::limits;

/// A bundle, with the places of its bases.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) bundle: BundleArg,
    pub(crate) base: BaseArgs,
}

impl Reading {
    /// Returns what these arguments are. The list of a channel is judged by `guard`, and not remembered.
    pub(crate) fn of(
        bundles: Vec<PathBuf>,
        base: BaseArgs,
        guard: impl FnOnce() -> Result<Guard, Failure>,
    ) -> Result<Self, Failure> {
        if let [place] = &bundles[..]
            && let Some(channel) = channel_at(place)?
        {
            channel.judge(&guard()?).about(&Channel::list_in(place))?;
            return Ok(Self::over(channel.newest(&limits())?, &base));
        }
        let mut sets = by_set(bundles);
        if sets.len() == 1 {
            return Ok(Self { bundle: BundleArg::of_group(sets.swap_remove(0)), base });
        }
        if sets.iter().any(|set| set.len() > 1) {
            return Err(Failure::usage("volumes are read as one bundle: give no other bundle with them"));
        }
        let bundles: Vec<PathBuf> = sets.into_iter().flatten().collect();
        if bundles.iter().any(|bundle| bundle == Path::new("-")) {
            return Err(Failure::usage("bundles that are read together have to be in files"));
        }
        Ok(Self::over(Chain::of(&bundles, base.is_given(), &limits())?, &base))
    }

    fn over(chain: Chain, base: &BaseArgs) -> Self {
        Self { bundle: BundleArg::of(chain.newest), base: base.and(&chain.bases) }
    }
}

/// Returns the channel at a place, if it is one.
pub(crate) fn channel_at(place: &Path) -> Result<Option<Channel>, Failure> {
    Channel::at(place).about(&Channel::list_in(place))
}
