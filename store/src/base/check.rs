//! The objects of the bases that unpacking a delta bundle needs, and whether they are there: checked before anything is written.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use sealift_format::hex;
use sealift_format::num;
use sealift_format::{
    BaseObject, Bundle, Chunk, Error as FormatError, Layout, Object, Part, PartOf, RootBase, Row, Rows,
};

use super::{BaseReader, Bases};
use crate::threads::parallel::map_with;
use crate::{Error, Phase, Progress};

/// How many missing objects a message names.
const NAMED: usize = 5;

/// Returns the base objects that make up the prefixes of these chunks, and those of these objects that the bundle does not carry.
pub fn needed(
    bundle: &Bundle,
    bases: &Bases,
    chunks: &[Row<Chunk>],
    objects: impl Iterator<Item = Row<Object>>,
) -> Vec<Row<BaseObject>> {
    let mut needed = BTreeSet::new();
    for chunk in chunks {
        let chunk = &bundle.layout.chunks[chunk.at()];
        needed.extend(bundle.layout.prefix_of(chunk).iter().map(|range| range.object));
    }
    let by_id = bases.by_id();
    let lacking = objects.filter(|object| !bundle.layout.is_stored(*object));
    let (made, of_base): (Vec<_>, Vec<_>) = lacking.partition(|object| bundle.layout.recipes.of(*object).is_some());
    needed.extend(of_base.into_iter().filter_map(|object| by_id.get(&bundle.index.object(object).id)));
    if !made.is_empty() {
        let mut uses = Uses { bundle, homes: bundle.homes(), seen: HashSet::new(), found: &mut needed };
        made.into_iter().for_each(|object| uses.add(PartOf::Object(object)));
    }
    needed.into_iter().collect()
}

/// The base objects that recipes use, in any way.
struct Uses<'a> {
    bundle: &'a Bundle,
    homes: Vec<Option<Row<Chunk>>>,
    seen: HashSet<PartOf>,
    found: &'a mut BTreeSet<Row<BaseObject>>,
}

impl Uses<'_> {
    /// Adds those that something uses. The depth of recipes is limited.
    fn add(&mut self, part: PartOf) {
        let Layout { recipes, chunks, .. } = &self.bundle.layout;
        if !self.seen.insert(part) {
            return;
        }
        let segments = match part {
            PartOf::Base(object) => {
                self.found.insert(object);
                return;
            }
            PartOf::View(view) => view.get(&recipes.views).map(|view| &view.segments),
            PartOf::Object(object) => recipes.of(object).map(|made| &made.segments),
        };
        if let Some(segments) = segments {
            let used = recipes.segments(segments).iter().flat_map(|segment| recipes.ranges(segment));
            used.for_each(|range| self.add(range.of));
        } else if let PartOf::Object(object) = part {
            let home = self.homes.get(object.at()).copied().flatten();
            let pieces = self.bundle.layout.pieces_of(object).iter().filter_map(|piece| piece.chunk);
            for chunk in home.into_iter().chain(pieces).filter_map(|chunk| chunk.get(chunks)) {
                for range in self.bundle.layout.prefix_of(chunk) {
                    let view = range.object.number().checked_sub(recipes.base_objects).and_then(Row::new);
                    self.add(view.filter(|_| !recipes.is_empty()).map_or(PartOf::Base(range.object), PartOf::View));
                }
            }
        }
    }
}

/// Checks that `target` still has each of these objects.
///
/// # Errors
/// Returns an error that names some of the missing objects.
pub fn check(
    bases: &Bases,
    needed: &[Row<BaseObject>],
    target: &Path,
    jobs: usize,
    progress: &Progress,
) -> Result<(), Error> {
    let bytes = needed.iter().filter_map(|object| bases.object(*object)).map(|object| object.size).sum();
    progress.enter(Phase::Hashing, bytes, num::wide(needed.len()));
    let held = map_with(
        jobs,
        needed,
        || BaseReader::new(bases),
        |reader, &object| {
            progress.check()?;
            let held = reader.holds(object, progress)?;
            progress.add(0, 1);
            Ok(held)
        },
    )?;
    let gone: Vec<_> = needed.iter().zip(held).filter(|(_, held)| !held).map(|(object, _)| *object).collect();
    if gone.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = gone.iter().take(NAMED).map(|object| bases.path(*object)).collect();
    let more = if gone.len() > NAMED { format!(" and {} more", gone.len() - NAMED) } else { String::new() };
    let named = named.join(", ");
    let problem = format!("the delta needs files of its base that were changed or removed: {named}{more}");
    Err(Error::missing_base(target, problem))
}

/// Returns whether the index of this digest is the only base of a delta bundle.
pub fn is_the_only(bases: &[RootBase], digest: &[u8; 32]) -> bool {
    matches!(bases, [only] if only.index_digest == *digest)
}

/// Returns the start of a digest, for messages.
pub fn short(digest: &[u8; 32]) -> String {
    hex(&digest[..6])
}

/// Returns the number that an object of the wanted index has among the objects of all bases, which `by_id` maps.
///
/// # Errors
/// Returns an error if no base has it. This cannot happen with the bases that a delta bundle was completed with.
pub fn number_of(by_id: &HashMap<[u8; 32], Row<BaseObject>>, object: &Object) -> Result<Row<BaseObject>, Error> {
    let what = "neither the delta nor a base has the object";
    let unknown = || FormatError::Malformed { part: Part::Index, what, at: 0 };
    Ok(by_id.get(&object.id).copied().ok_or_else(unknown)?)
}

impl Bases {
    /// Maps each object's id to its number.
    pub fn by_id(&self) -> HashMap<[u8; 32], Row<BaseObject>> {
        let mut by_id: HashMap<[u8; 32], Row<BaseObject>> =
            HashMap::with_capacity(self.list.iter().map(|base| base.index.objects().len()).sum());
        for (number, object) in Rows::new(0..u32::MAX).zip(self.list.iter().flat_map(|base| base.index.objects())) {
            let known = by_id.entry(object.id).or_insert(number);
            // One base may list an object that only another one holds.
            if !self.is_at_hand(*known) && self.is_at_hand(number) {
                *known = number;
            }
        }
        for (object, number) in self.made() {
            by_id.entry(object.id).or_insert(number);
        }
        by_id
    }
}
