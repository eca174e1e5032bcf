//! What a verb reads: a bundle, a full bundle with the deltas that lead from it to a newer version, or the newest version of a channel; of a bundle or a
//! channel at several addresses, each part from one of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sealift::channel::{Chain, Channel};
use sealift::trust::Guard;
use sealift::{Input, by_set, is_address};

use super::base_args::BaseArgs;
use super::bundle::BundleArg;
use super::failure::{About as _, Failure, shown};
use super::limits::limits;
use super::show::Show;

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
        show: Show,
        guard: impl FnOnce() -> Result<Guard, Failure>,
    ) -> Result<Self, Failure> {
        if let [place] = &bundles[..]
            && let Some(channel) = channel_at(place)?
        {
            channel.judge(&guard()?).about(&Channel::list_in(place))?;
            return Self::newest_of(&channel, &base);
        }
        if are_channels(&bundles) {
            return Self::newest_of(&channel_of_mirrors(&bundles, &guard()?, show)?, &base);
        }
        if are_mirrors(&bundles) {
            let (first, others) = bundles.split_first().map_or_else(Default::default, |(a, b)| (a.clone(), b.to_vec()));
            return Ok(Self { bundle: BundleArg::with_copies(first, others), base });
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

    fn newest_of(channel: &Channel, base: &BaseArgs) -> Result<Self, Failure> {
        let chain = channel.newest(&limits())?;
        let copies = channel.copies_at(&chain.newest);
        Ok(Self { bundle: BundleArg::with_copies(chain.newest, copies), base: base.and(&chain.bases) })
    }

    fn over(chain: Chain, base: &BaseArgs) -> Self {
        Self { bundle: BundleArg::of(chain.newest), base: base.and(&chain.bases) }
    }
}

/// Returns whether these are several addresses of channels, and so of one.
fn are_channels(places: &[PathBuf]) -> bool {
    places.len() > 1 && places.iter().all(|place| Channel::is_address(place))
}

/// Returns whether these are several addresses of one bundle or one channel. One that cannot be read is an address of a bundle whose name it ends with.
pub(crate) fn are_mirrors(places: &[PathBuf]) -> bool {
    if places.len() < 2 || !places.iter().all(|place| is_address(place)) {
        return false;
    }
    if are_channels(places) {
        return true;
    }
    let root = |place: &PathBuf| {
        let head = Input::open_mirror(place).and_then(|mut input| input.read_head(limits()));
        head.ok().map(|head| head.root_digest())
    };
    let roots: Vec<Option<[u8; 32]>> = places.iter().map(root).collect();
    let different: BTreeSet<&[u8; 32]> = roots.iter().flatten().collect();
    let is_read = |name| places.iter().zip(&roots).any(|(place, root)| root.is_some() && name_of(place) == name);
    different.len() == 1 && places.iter().zip(&roots).all(|(place, root)| root.is_some() || is_read(name_of(place)))
}

/// Returns what an address ends with, but for a query.
fn name_of(address: &Path) -> String {
    let address = address.to_string_lossy();
    let path = address.split(['?', '#']).next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// Returns the channel that is at several addresses, and warns of those that are left.
pub(crate) fn channel_of_mirrors(places: &[PathBuf], guard: &Guard, show: Show) -> Result<Channel, Failure> {
    let list = places.first().map_or_else(PathBuf::new, |place| Channel::list_in(place));
    let (channel, left) = Channel::of_mirrors(places, guard).about(&list)?;
    for (place, error) in left {
        show.warn(&format!("{} was left: {error}", shown(&place)));
    }
    Ok(channel)
}

/// Returns the channel at a place, if it is one.
pub(crate) fn channel_at(place: &Path) -> Result<Option<Channel>, Failure> {
    Channel::at(place).about(&Channel::list_in(place))
}
