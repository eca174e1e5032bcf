//! Channels: an update from a web server, beside casync and over a slow line; publishing a day of a tree that changes daily; and what a thousand devices
//! fetch.

use anyhow::Result;

use super::places::Places;
use super::report::Report;
use super::web::Web;
use super::{devices, ebuilds, following, publishing};

pub(crate) fn add(report: &mut Report, is_small: bool, places: &Places) -> Result<()> {
    let web = Web::start(places)?;
    following::add(report, &web, is_small, places)?;
    publishing::add(report, if is_small { ebuilds::FEW_CATEGORIES } else { ebuilds::CATEGORIES }, places)?;
    devices::add(report, &web, places)?;
    places.remove(&["SCRATCH/www", "SCRATCH/days"])
}
