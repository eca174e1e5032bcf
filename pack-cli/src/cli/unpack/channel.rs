//! `unpack` of a channel: the cheapest way to the newest version that this device takes.

use std::cell::Cell;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealift::archive::ArchiveEncoder;
use sealift::channel::{Channel, ListedFile};
use sealift::fs::is_there;
use sealift::trust::TargetKind;
use sealift::unpack::is_half_updated;
use sealift::{Error, Input, is_address};
use serde::Serialize;

use super::Unpack;
use crate::base_args::BaseArgs;
use crate::bundle::BundleArg;
use crate::escape;
use crate::failure::{About as _, Failure, shown};
use crate::human::{Bytes, count};
use crate::limits::limits;
use crate::reading::channel_of_mirrors;
use crate::several::Several;
use crate::show::BOLD;
use crate::trust_args::Judge;
use sealift_format::num;

impl Unpack {
    /// Installs the newest version of a channel that is at several addresses.
    pub(super) fn take_mirrors(&mut self, places: &[PathBuf]) -> Result<(), Failure> {
        let judge = self.trust.load()?;
        let channel = channel_of_mirrors(places, judge.guard(), self.show)?;
        self.take_channel(&channel, channel.place())
    }

    /// Installs the newest version of a channel.
    pub(super) fn take_channel(&mut self, channel: &Channel, place: &Path) -> Result<(), Failure> {
        let judge = self.trust.load()?;
        let (list, path) = (channel.list().list(), Channel::list_in(place));
        let judged = match self.dry_run {
            true => channel.judge(judge.guard()),
            false => judge.guard().take_list(channel.list()),
        };
        judged.about(&path)?;
        let found = self.found(&judge);
        if let Some(bound) = self.wanted_name(&found).filter(|bound| *bound != list.name) {
            let (target, name) = (self.target.clone().unwrap_or_default(), list.name.clone());
            return Err(Error::OtherName { target, bound, name }.into());
        }
        let mut goals: Vec<(u64, [u8; 32])> = list.files.iter().map(|row| (row.version, row.index_digest)).collect();
        goals.sort_unstable_by(|a, b| b.cmp(a));
        goals.dedup();
        let (mut passed_over, mut refusal) = (Vec::new(), None);
        let (paths, trust) = (&[place.to_owned()][..], &self.trust.clone());
        let (show, passed) = (self.show, Cell::new(0));
        let several = Several { paths, name: None, held: Vec::new(), trust, show, passed, said: &[] };
        for (version, goal) in goals {
            loop {
                let held = self.held(&judge)?;
                let Some(way) = self.way(channel, &held, goal, &passed_over) else { break };
                let rows: Vec<&ListedFile> = way.iter().filter_map(|number| list.files.get(*number)).collect();
                if rows.is_empty() {
                    return self.say_unchanged(place, version, &list.name, refusal.is_some());
                }
                let mut opened = Vec::new();
                let refused = self.refused(channel, &way, &rows, &judge, &mut opened)?;
                let failed = match refused {
                    Some(refused) => Some(refused),
                    None => self.take_way(channel, &way, &rows, opened)?,
                };
                let Some((number, path, failure)) = failed else { return Ok(()) };
                several.say(&path, failure.kind(), &failure.message());
                passed_over.push(number);
                refusal.get_or_insert(failure);
            }
        }
        Err(refusal.map_or_else(
            || {
                Failure::usage(format!(
                    "{}: no file of this channel leads from what the target holds to a version",
                    shown(place)
                ))
            },
            |failure: Failure| failure.of_several(&shown(place)),
        ))
    }

    /// Returns the first bundle of a way that is not there, is another one, or must not be used. A server that cannot be reached, or a state that cannot
    /// be read, is no reason for another way. `opened` takes what was opened, to be installed without asking the server again.
    fn refused(
        &self,
        channel: &Channel,
        way: &[usize],
        rows: &[&ListedFile],
        judge: &Judge,
        opened: &mut Vec<Arc<Input>>,
    ) -> Result<Option<(usize, PathBuf, Failure)>, Failure> {
        for (row, number) in rows.iter().zip(way) {
            let path = channel.path_of(row);
            let found = channel.open_file(row, limits());
            let error = match found.map(|(head, input)| judge.guard().judge(&head).map(|_| input)) {
                Ok(Ok(input)) => {
                    opened.push(input.into());
                    continue;
                }
                Ok(Err(error)) if error.kind().is_none() => return Err(error.into()),
                Err(Error::Io { doing, path, source }) if is_address(&path) && source.kind() != ErrorKind::NotFound => {
                    return Err(Error::Io { doing, path, source }.into());
                }
                Ok(Err(error)) | Err(error) => error,
            };
            return Ok(Some((*number, path, error.into())));
        }
        Ok(None)
    }

    /// Returns the rows to be installed one after the other.
    fn way(&self, channel: &Channel, held: &[[u8; 32]], goal: [u8; 32], passed_over: &[usize]) -> Option<Vec<usize>> {
        let way = channel.way(held, goal, passed_over, !self.takes_chains());
        let is_checked = self.rehash || self.target.as_deref().is_some_and(is_half_updated);
        if !is_checked || way.as_ref().is_none_or(|way| !way.is_empty()) {
            return way;
        }
        // What the target holds is to be completed or repaired: by a full bundle, which has all of it.
        let rows = channel.list().list().files.iter().enumerate();
        let rows = rows.filter(|(number, row)| row.index_digest == goal && !passed_over.contains(number));
        rows.min_by_key(|(_, row)| (!row.bases.is_empty(), row.len)).map(|(number, _)| vec![number])
    }

    /// Returns whether the target can be updated several times in one run.
    pub(super) fn takes_chains(&self) -> bool {
        self.slots.is_empty() && self.target.as_deref().is_none_or(|target| ArchiveEncoder::of(target).is_none())
    }

    /// Installs the bundles of a way. Returns the one that is at fault, if one is.
    fn take_way(
        &mut self,
        channel: &Channel,
        way: &[usize],
        rows: &[&ListedFile],
        opened: Vec<Arc<Input>>,
    ) -> Result<Option<(usize, PathBuf, Failure)>, Failure> {
        let paths: Vec<PathBuf> = rows.iter().map(|row| channel.path_of(row)).collect();
        if self.dry_run && rows.len() > 1 {
            return self.say_chain(&paths, rows.iter().map(|row| row.len).sum()).map(|()| None);
        }
        let copies: Vec<Vec<PathBuf>> = rows.iter().map(|row| channel.copies_of(row)).collect();
        let mut taken = self.take_chain_of(&paths, &copies, opened);
        match taken.as_mut().map_err(|failure| way.iter().zip(&paths).find(|(_, path)| failure.is_of(path))) {
            Ok(()) => Ok(None),
            Err(Some((number, path))) => {
                let (number, path) = (*number, path.clone());
                Ok(taken.err().map(|failure| (number, path, failure)))
            }
            Err(None) => taken.map(|()| None),
        }
    }

    /// Installs bundles one after the other: each is an update of its own. The command of `--then` runs after the last.
    pub(super) fn take_chain(&mut self, paths: &[PathBuf]) -> Result<(), Failure> {
        self.take_chain_of(paths, &[], Vec::new())
    }

    /// As [`Self::take_chain`], with the other places of each, or what was opened of each.
    fn take_chain_of(
        &mut self,
        paths: &[PathBuf],
        copies: &[Vec<PathBuf>],
        opened: Vec<Arc<Input>>,
    ) -> Result<(), Failure> {
        let (mut copies, mut opened) = (copies.iter(), opened.into_iter());
        let Some((last, before)) = paths.split_last() else { return Ok(()) };
        let (then, update, delete) = (self.then.take(), self.update, self.delete);
        let tree = self.target.as_deref().filter(|target| TargetKind::of(target).0 == TargetKind::Directory);
        let is_tree = tree.is_some();
        let is_new = tree.map_or(Ok(false), |target| is_there(target).map(|there| !there))?;
        let mut step = |own: &mut Self, path: &PathBuf| {
            own.bundle = BundleArg::with_copies(path.clone(), copies.next().cloned().unwrap_or_default());
            // Copies are opened together.
            own.bundle.opened = opened.next().filter(|_| own.bundle.copies.is_empty());
            own.base = BaseArgs::default();
            let done = own.run_one();
            own.bundle.tell_of_copies(own.show);
            own.update |= is_tree;
            // Nothing but what the bundles have is in a directory that did not exist.
            own.delete |= is_new;
            done
        };
        let mut done = before.iter().try_for_each(|path| step(self, path));
        self.then = then;
        if done.is_ok() {
            done = step(self, last);
        }
        (self.update, self.delete) = (update || (done.is_err() && is_new), delete || is_new);
        done
    }

    /// Says that the target holds the newest version.
    fn say_unchanged(&self, place: &Path, version: u64, name: &str, is_passed: bool) -> Result<(), Failure> {
        let mut out = self.show.out();
        if self.show.is_told(&mut out, &JsonUnchanged { unchanged: true, name, version })? {
            return Ok(());
        }
        let target = self.target.as_deref().or(self.usb.as_deref()).unwrap_or(place);
        let (target, place) = (escape::text(&shown(target)), shown(place));
        writeln!(
            out,
            "{BOLD}{target}{BOLD:#}: unchanged, holds {name} version {version}, the newest of {}{}",
            escape::text(&place),
            if is_passed { " that this device takes" } else { "" }
        )?;
        Ok(())
    }

    /// Says which bundles would be installed one after the other.
    pub(super) fn say_chain(&self, paths: &[PathBuf], bytes: u64) -> Result<(), Failure> {
        let mut out = self.show.out();
        let bundles: Vec<String> = paths.iter().map(|path| shown(path)).collect();
        if self.show.is_told(&mut out, &JsonChain { dry_run: true, chain: &bundles, bytes })? {
            return Ok(());
        }
        let target = self.target.as_deref().or(self.usb.as_deref()).unwrap_or(Path::new(""));
        let (target, number) = (shown(target), count(num::wide(paths.len()), "bundle"));
        writeln!(out, "{BOLD}{}{BOLD:#}: would take {number}, one after the other", escape::text(&target))?;
        for bundle in &bundles {
            writeln!(out, "  {}", escape::text(bundle))?;
        }
        writeln!(out, "  {} would be read at most; nothing was written", Bytes(bytes))?;
        Ok(())
    }
}

#[derive(Serialize)]
struct JsonUnchanged<'a> {
    unchanged: bool,
    name: &'a str,
    version: u64,
}

#[derive(Serialize)]
struct JsonChain<'a> {
    dry_run: bool,
    chain: &'a [String],
    bytes: u64,
}
