//! `sealift order import`: a profile of what another program recorded.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use sealift::Error;
use sealift::order::import::{Disk, Form, ImportOptions, Imported, import};

use super::{OutputArgs, Remarks};
use crate::failure::Failure;
use crate::one_of::one_of;
use crate::show::Show;

/// Make a profile from what another program recorded
#[derive(Args, Debug)]
#[command(after_long_help = "\
Forms:
  paths      a list of paths, each ended by a newline or NUL
  strace     the output of strace -f -y
             -e trace=open,openat,execve,mmap,read,pread64
  readahead  the pack file of systemd-readahead, /.readahead
  nbdkit     the log of nbdkit --filter=log: the reads of a disk image.
             --filesystem is the image itself, and gives the files that were
             read of its ext4, EROFS or squashfs; --image is the image's path
             in the tree, and gives the ranges that were read of it
  sort       a list for mksquashfs -sort or genisoimage -sort: paths with
             priorities

Absolute paths are those below --root, the others are relative to it. Files
that do not exist may be named: pack ignores them.

Examples:
  strace -f -y -e trace=open,openat,execve,mmap,read,pread64 -o log editor
  sealift order import strace log -o editor.order
  find usr/share/icons -type f -print0 | sealift order import paths -
  sealift order import nbdkit vm.log --filesystem vm.img --offset 1048576
  sealift order import nbdkit vm.log --image images/vm.img -o vm.order")]
pub(crate) struct Import {
    /// The format of FILE
    #[arg(value_name = "FORM", value_parser = one_of(FORMS))]
    form: Form,
    /// The file; - for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The directory that is the root of the tree
    #[arg(
        long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = "/",
        conflicts_with_all = ["image", "filesystem"]
    )]
    root: PathBuf,
    /// The path, in the packed tree, of the disk image whose reads nbdkit logged
    #[arg(long, value_name = "PATH")]
    image: Option<OsString>,
    /// The disk image whose reads nbdkit logged, to find the files in it
    #[arg(long, value_name = "IMAGE", value_hint = ValueHint::FilePath, conflicts_with = "image")]
    filesystem: Option<PathBuf>,
    /// Where the file system begins in the image, in bytes
    #[arg(long, value_name = "BYTES", requires = "filesystem", conflicts_with = "image")]
    offset: Option<u64>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    show: Show,
}

/// The forms by name.
const FORMS: [(&str, Form); 5] = [
    ("paths", Form::Paths),
    ("strace", Form::Strace),
    ("readahead", Form::Readahead),
    ("nbdkit", Form::Nbdkit),
    ("sort", Form::Sort),
];

impl Import {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let disk = match (&self.filesystem, &self.image) {
            (Some(image), _) => Some(Disk::FileSystem { image: image.clone(), offset: self.offset.unwrap_or(0) }),
            (None, image) => image.as_ref().map(|path| Disk::Image(path.as_bytes().to_vec())),
        };
        if disk.is_some() != (self.form == Form::Nbdkit) {
            return Err(Failure::usage("nbdkit needs --filesystem or --image; other forms take neither"));
        }
        let place = self.output.place()?;
        let mut options = ImportOptions::default();
        options.root = match self.root.is_absolute() {
            true => self.root.clone(),
            false => self.root.canonicalize().map_err(|error| Error::io("find", &self.root, error))?,
        };
        options.disk = disk;
        let (mut input, name): (Box<dyn BufRead>, &Path) = match self.file == Path::new("-") {
            true => (Box::new(std::io::stdin().lock()), Path::new("standard input")),
            false => {
                let file = File::open(&self.file).map_err(|error| Error::io("open", &self.file, error))?;
                (Box::new(BufReader::new(file)), &self.file)
            }
        };
        let imported = import(self.form, &mut input, name, &options)?;
        let Imported { profile, outside, malformed, elsewhere, .. } = imported;
        let remarks = Remarks { outside, malformed, elsewhere, ..Remarks::default() };
        self.output.write(&place, &profile, remarks, self.show, false)
    }
}
