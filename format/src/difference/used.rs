//! Checks that all carried attributes and objects are used (delta 5.2).

use alloc::vec::Vec;

use crate::{Error, Object, Row};

use super::reference::ReferenceRows;
use super::{Difference, Reference};
use crate::index::row_fault;

/// Which rows of the tables of attributes and objects are used.
#[derive(Default)]
pub(super) struct Used {
    pub(super) attributes: usize,
    objects: Vec<Row<Object>>,
}

impl Used {
    pub(super) fn objects(&mut self, rows: ReferenceRows, steps: Vec<u32>) -> Result<Vec<Reference>, Error> {
        let Some(references) = rows.follow(steps.into_iter()) else {
            return Err(row_fault("a file has an object that neither base nor difference have", 0));
        };
        self.objects.extend(references.iter().filter_map(|reference| match reference {
            Reference::Carried(object) => Some(*object),
            Reference::Base(_) => None,
        }));
        Ok(references)
    }

    pub(super) fn finish(self, difference: &Difference) -> Result<(), Error> {
        if self.attributes != difference.attributes.len() {
            return Err(row_fault("unreferenced attributes", difference.attributes.len()));
        }
        let mut is_used = alloc::vec![false; difference.objects.len()];
        self.objects.iter().for_each(|object| is_used[object.at()] = true);
        match is_used.iter().position(|is_used| !is_used) {
            Some(object) => Err(row_fault("an object is carried that no file has", object)),
            None => Ok(()),
        }
    }
}
