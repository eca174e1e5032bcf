//! Walks a stage from directory to directory, each time from the last one, so that the time does not depend on the depth.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use sealift_format::{Directory, Index, Row};

use crate::fs::confined::{STEP_LEN, open_within};

/// A thread's position. Only this run can change the stage while it is built, so `..` leads back.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    at: Option<(Row<Directory>, OwnedFd)>,
}

impl Walk {
    /// Moves to a directory of the index, in the stage that is open as `root`.
    pub(crate) fn go(
        &mut self,
        index: &Index,
        root: BorrowedFd<'_>,
        to: Row<Directory>,
    ) -> Result<BorrowedFd<'_>, Errno> {
        let (from, base) = match self.at.take() {
            Some((at, fd)) if at == to => return Ok(self.stand(to, fd)),
            Some((at, fd)) => (at, fd),
            None => (root_of(index, to), root.try_clone_to_owned().map_err(|_| Errno::MFILE)?),
        };
        let mut base = base;
        for step in steps(index, from, to) {
            base = open_within(base.as_fd(), &step, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
        }
        Ok(self.stand(to, base))
    }

    fn stand(&mut self, at: Row<Directory>, fd: OwnedFd) -> BorrowedFd<'_> {
        self.at.insert((at, fd)).1.as_fd()
    }
}

fn root_of(index: &Index, mut directory: Row<Directory>) -> Row<Directory> {
    while let Some(parent) = index.directory(directory).parent {
        directory = parent;
    }
    directory
}

/// Returns the way from one directory to another of the same tree, in paths short enough for a system call.
fn steps(index: &Index, from: Row<Directory>, to: Row<Directory>) -> Vec<Vec<u8>> {
    let (mut here, mut there) = (from, to);
    let mut up = 0_usize;
    let mut down: Vec<&[u8]> = Vec::new();
    let parent = |directory: &Directory| directory.parent.unwrap_or(Row::FIRST);
    while here != there {
        let (a, b) = (index.directory(here), index.directory(there));
        if a.depth >= b.depth {
            up += 1;
            here = parent(a);
        } else {
            down.push(index.name(index.entry(b.entry)));
            there = parent(b);
        }
    }
    let names = std::iter::repeat_n(&b".."[..], up).chain(down.into_iter().rev());
    let mut steps: Vec<Vec<u8>> = Vec::new();
    for name in names {
        match steps.last_mut() {
            Some(step) if step.len() + 1 + name.len() <= STEP_LEN => {
                step.push(b'/');
                step.extend(name);
            }
            _ => steps.push(name.to_vec()),
        }
    }
    steps
}
