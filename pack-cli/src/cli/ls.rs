//! `sealift ls`: lists the files in a bundle.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use sealift::channel::Chain;
use sealift::diff::Change;
use sealift::difference::{Becomes, EditedName};
use sealift::inside::{InnerFile, Listing, is_inside, list};
use sealift::inspect::{EntryKind, FileType, Listed, RefKind, entries, entries_below, find, refs};
use sealift::{Opened, Progress, RootBase};
use sealift_format::hex;
use serde::Serialize;

use super::base_args::BaseArgs;
use super::bundle::BundleArg;
use super::differences::{self, Words};
use super::escape;
use super::failure::{About as _, Failure, shown};
use super::jobs_arg::JobsArg;
use super::json_file::JsonFile;
use super::limits::limits;
use super::reading::Reading;
use super::show::{BOLD, Form, json_line};
use super::time::Moment;
use super::trust_args::ListTrustArgs;

/// List the files in a bundle
///
/// Prints one path per line, in the bundle's order: the files of a directory, then those of its subdirectories. If the bundle has several
/// refs, prefixes each path with REF:. For a delta without its base, prints what it adds (A), changes (M, or m for metadata only) and
/// removes (D), but not the names in OSTree commits. Does not require a signature; `sealift info` shows who signed. Escapes control characters
/// and invalid UTF-8, as \n, \xff or \u{1b}, and a backslash as \\. IMAGE// lists the regular files and symbolic links in an image,
/// archive or compressed file, and IMAGE//PATH those below PATH in it, with paths that `sealift cat` takes.
#[derive(Args, Debug)]
#[command(override_usage = "sealift ls [OPTIONS] <BUNDLE>... [[REF:][IMAGE//]PATH]")]
#[command(after_long_help = "\
With --json, each line is one object with the fields ref, path, type (file, dir,
symlink, char, block, fifo, socket), mode, uid, gid, mtime, mtime_ns, size and
id (files), target (symlinks), major and minor (devices), xattrs and inode; for
a delta without its base, with ref, path, kind (added, changed, metadata,
removed), and type and size where the delta states them; for files in an image,
with ref, path, type, and size or target. In names, %XX stands for a byte of a control
character or of invalid UTF-8, and for %.

Examples:
  sealift ls os.sealift | head
  sealift ls -l os.sealift usr/bin
  sealift ls os-7.sealift os-7-to-8.sealift os-8-to-9.sealift
  sealift ls https://example.org/os/
  sealift ls --json os.sealift | jq -r 'select(.size > 1000000) | .path'
  sealift ls -0 os.sealift | xargs -0 -n1 echo
  sealift ls -l image.sealift os.squashfs//usr/bin")]
pub(crate) struct Ls {
    /// The bundle, and then a path to list only that and what is below it
    ///
    /// Instead of the bundle: a channel's directory or address, for its newest version, whose list has to be signed by a trusted key; a full bundle and the
    /// deltas that lead from it to a version, in any order; volumes; or - for standard input. A PATH that is also the name of such a file here begins
    /// with a slash.
    #[arg(value_name = "BUNDLE|[REF:][IMAGE//]PATH", required = true, value_hint = ValueHint::FilePath)]
    arguments: Vec<PathBuf>,
    #[arg(skip)]
    bundle: BundleArg,
    #[arg(skip)]
    path: Option<OsString>,
    /// Also print mode, owner, group, size and time
    #[arg(long, short, conflicts_with = "null")]
    long: bool,
    /// Print raw names, each followed by a NUL byte
    #[arg(long, short = '0', conflicts_with = "json")]
    null: bool,
    #[command(flatten)]
    base: BaseArgs,
    #[command(flatten)]
    trust: ListTrustArgs,
    #[command(flatten)]
    form: Form,
}

impl Ls {
    pub(crate) fn run(mut self) -> Result<(), Failure> {
        let mut bundles = std::mem::take(&mut self.arguments);
        let mut rest = bundles.split_off(Chain::length(&bundles, &limits()));
        if rest.len() > 1 {
            let first = rest.first().map(|path| shown(path)).unwrap_or_default();
            return Err(Failure::usage(format!(
                "{first}: no bundle is there, and only one PATH can be given, as the last"
            )));
        }
        self.path = rest.pop().map(PathBuf::into_os_string);
        let reading = Reading::of(bundles, std::mem::take(&mut self.base), self.form.show(), || self.trust.guard())?;
        (self.bundle, self.base) = (reading.bundle, reading.base);
        let opened = self.base.read_untrusted(&self.bundle)?;
        let bundle = match &opened {
            Opened::Whole(bundle) => bundle,
            Opened::Delta(delta) => {
                self.name_bases(delta.bases())?;
                self.list_edits(&delta.difference)?;
                self.name_times(!delta.difference.times().is_empty())?;
                return Ok(self.name_commits(&opened)?);
            }
        };
        let several = bundle.index.refs().len() > 1;
        if let Some(path) = self.path.as_ref().filter(|path| is_inside(bundle, path.as_bytes())) {
            return self.list_inside(path.as_bytes(), several);
        }
        // A path that does not exist is an error, as in ls.
        let top = self.path.as_ref().map(|path| find(bundle, path.as_bytes())).transpose()?;
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let all = || -> Box<dyn Iterator<Item = Listed<'_>>> {
            match top {
                Some(top) => Box::new(entries_below(bundle, top)),
                None => Box::new(entries(bundle)),
            }
        };
        let listed = || all().filter(|entry| entry.parent.is_some());
        if self.form.show().json {
            // Programs need the roots too.
            for entry in all() {
                json_line(&mut out, &JsonEntry::of(&entry))?;
            }
        } else if self.null {
            for entry in listed() {
                out.write_all(&full_path(&entry, several))?;
                out.write_all(&[0])?;
            }
        } else if self.long {
            let widths = listed().fold(Widths::default(), |widths, entry| widths.with(&entry));
            for entry in listed() {
                widths.write(&mut out, &entry, several)?;
            }
        } else {
            for entry in listed() {
                writeln!(out, "{}", escape::bytes(&full_path(&entry, several)))?;
            }
        }
        Ok(out.flush()?)
    }

    /// Lists the files in a file of the bundle.
    fn list_inside(&self, path: &[u8], several: bool) -> Result<(), Failure> {
        let bundle = self.bundle.open()?.begin(limits()).about(&self.bundle.bundle)?;
        let bases = self.base.given(JobsArg::default(), None);
        let Listing { reference, container, files, .. } =
            list(bundle, &bases, path, &Progress::default()).about(&self.bundle.bundle)?;
        let prefix = if several { format!("{reference}:") } else { String::new() };
        let width = files.iter().map(|file| file.size).max().map_or(0, |size| size.to_string().len());
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        for file in &files {
            let path = [&container[..], &file.path].concat();
            if self.form.show().json {
                let path = escape::percent(&path);
                json_line(&mut out, &JsonInner::new(&reference, path, file))?;
                continue;
            }
            let path = [prefix.as_bytes(), &path].concat();
            if self.null {
                out.write_all(&path)?;
                out.write_all(&[0])?;
            } else if self.long {
                write!(out, "{:>width$} {}", file.size, escape::bytes(&path))?;
                match &file.target {
                    Some(target) => writeln!(out, " -> {}", escape::bytes(target))?,
                    None => writeln!(out)?,
                }
            } else {
                writeln!(out, "{}", escape::bytes(&path))?;
            }
        }
        Ok(out.flush()?)
    }

    /// Prints which base the changes apply to: on standard error, because programs may parse the list.
    fn name_bases(&self, bases: &[RootBase]) -> io::Result<()> {
        if self.form.show().json || self.null {
            return Ok(());
        }
        // The changes apply to the first base's trees.
        bases.first().map_or(Ok(()), |base| writeln!(anstream::stderr(), "{BOLD}changes to {base}:{BOLD:#}"))
    }

    /// Prints on standard error that files not listed may get another time: a delta sets these by a rule, and only the base shows for which files.
    fn name_times(&self, is_so: bool) -> io::Result<()> {
        if !is_so || self.form.show().json || self.null {
            return Ok(());
        }
        let compare = format!("sealift diff BASE {}", shown(&self.bundle.bundle));
        writeln!(anstream::stderr(), "some unlisted files get another modification time; to list them: {compare}")
    }

    /// Prints on standard error which refs are commits: a delta describes changes to their names in a form that needs the base.
    fn name_commits(&self, delta: &Opened) -> io::Result<()> {
        for found in refs(delta).iter().filter(|found| matches!(found.kind, RefKind::Commit { .. })) {
            let compare = format!("sealift diff BASE {}", shown(&self.bundle.bundle));
            let hint = format!("{} is an OSTree commit; to list what changes in it: {compare}", found.name);
            if self.form.show().json {
                self.form.show().warn(&hint);
            } else {
                writeln!(anstream::stderr(), "{hint}")?;
            }
        }
        Ok(())
    }

    /// Lists the changes that a delta bundle makes to names.
    fn list_edits(&self, difference: &sealift_format::Difference) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        // Each pass builds the paths again: to keep them would take memory that grows with the square of a tree's depth.
        let edits = || difference.edited_names();
        let first = edits().next().map(|edit| edit.reference);
        let several = edits().any(|edit| Some(edit.reference) != first);
        let path_of = |edit: &EditedName<'_>| {
            let prefix = if several { format!("{}:", edit.reference) } else { String::new() };
            [prefix.as_bytes(), if edit.path.is_empty() { b".".as_slice() } else { &edit.path }].concat()
        };
        let is_below = |path: &[u8], wanted: &[u8]| {
            let rest = path.strip_prefix(wanted);
            rest.is_some_and(|rest| wanted.is_empty() || rest.is_empty() || rest.starts_with(b"/"))
        };
        let written = self.path.as_ref().map(|path| path.as_bytes().to_vec()).unwrap_or_default();
        let mut wanted = escape::readings(&written);
        wanted.retain(|wanted| edits().any(|edit| is_below(&path_of(&edit), wanted)));
        let width = edits().filter_map(|edit| edit.size).max().map_or(0, |size| size.to_string().len());
        for edit in edits() {
            let path = path_of(&edit);
            if !wanted.iter().any(|wanted| is_below(&path, wanted)) {
                continue;
            }
            let (letter, _) = differences::mark(change_of(edit.becomes));
            if self.form.show().json {
                json_line(&mut out, &JsonEdit::of(&edit))?;
            } else if self.null {
                out.write_all(&path)?;
                out.write_all(&[0])?;
            } else if self.long {
                let size = edit.size.map_or_else(String::new, |size| size.to_string());
                writeln!(out, "{letter}  {size:>width$}  {}", escape::bytes(&path))?;
            } else {
                writeln!(out, "{letter}  {}", escape::bytes(&path))?;
            }
        }
        out.flush()
    }
}

fn full_path(entry: &Listed<'_>, several: bool) -> Vec<u8> {
    let path = entry.path();
    if several { [entry.reference.name.as_bytes(), b":", &path].concat() } else { path }
}

/// The column widths of `ls -l`.
#[derive(Clone, Copy, Default)]
struct Widths {
    uid: usize,
    gid: usize,
    size: usize,
}

impl Widths {
    fn with(self, entry: &Listed<'_>) -> Self {
        Self {
            uid: self.uid.max(entry.attributes.uid.to_string().len()),
            gid: self.gid.max(entry.attributes.gid.to_string().len()),
            size: self.size.max(size(entry).len()),
        }
    }

    fn write(&self, out: &mut impl Write, entry: &Listed<'_>, several: bool) -> io::Result<()> {
        let Self { uid: uid_width, gid: gid_width, size: size_width } = *self;
        let (attributes, mode) = (entry.attributes, mode(entry));
        let more = if attributes.xattrs.is_empty() { ' ' } else { '+' };
        write!(
            out,
            "{mode}{more} {:>uid_width$} {:>gid_width$} {:>size_width$} {} {}",
            attributes.uid,
            attributes.gid,
            size(entry),
            Moment(entry.inode.mtime),
            escape::bytes(&full_path(entry, several)),
        )?;
        match entry.what {
            EntryKind::Symlink(target) => writeln!(out, " -> {}", escape::bytes(target)),
            _ => writeln!(out),
        }
    }
}

/// Returns the size of a file, or the numbers of a device.
fn size(entry: &Listed<'_>) -> String {
    match entry.what {
        EntryKind::Regular { object, .. } => object.size.to_string(),
        EntryKind::Symlink(target) => target.len().to_string(),
        EntryKind::CharDevice(device) | EntryKind::BlockDevice(device) => format!("{},{}", device.major, device.minor),
        _ => "-".into(),
    }
}

/// Returns type and permissions in the ten letters of ls.
fn mode(entry: &Listed<'_>) -> String {
    let bits = entry.attributes.mode;
    let mut out = String::with_capacity(10);
    out.push(match entry.what {
        EntryKind::Directory => 'd',
        EntryKind::Symlink(_) => 'l',
        EntryKind::CharDevice(_) => 'c',
        EntryKind::BlockDevice(_) => 'b',
        EntryKind::Fifo => 'p',
        EntryKind::Socket => 's',
        _ => '-',
    });
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let three = bits >> shift & 0o7;
        out.push(if three & 4 != 0 { 'r' } else { '-' });
        out.push(if three & 2 != 0 { 'w' } else { '-' });
        out.push(match (three & 1 != 0, bits & special != 0) {
            (true, true) => letter,
            (false, true) => letter.to_ascii_uppercase(),
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    out
}

/// A line of `--json`, with its fields in the order that tests/reference/README.md gives.
#[derive(Serialize)]
struct JsonEntry<'a> {
    #[serde(rename = "ref")]
    reference: &'a str,
    path: String,
    #[serde(flatten)]
    file: JsonFile<'a>,
    inode: u32,
}

impl<'a> JsonEntry<'a> {
    fn of(entry: &Listed<'a>) -> Self {
        let (mut object, mut target, mut device) = (None, None, None);
        match entry.what {
            EntryKind::Regular { object: found, .. } => object = Some(found),
            EntryKind::Symlink(to) => target = Some(escape::percent(to)),
            EntryKind::CharDevice(found) | EntryKind::BlockDevice(found) => device = Some(found),
            _ => {}
        }
        Self {
            reference: &entry.reference.name,
            path: if entry.parent.is_some() { escape::percent(&entry.path()) } else { ".".into() },
            file: JsonFile {
                kind: entry.attributes.file_type().word(),
                mode: entry.attributes.mode & 0o7777,
                uid: entry.attributes.uid,
                gid: entry.attributes.gid,
                mtime: entry.inode.mtime,
                mtime_ns: entry.inode.mtime_ns,
                size: object.map(|object| object.size),
                id: object.map(|object| hex(&object.id)),
                target,
                major: device.map(|device| device.major),
                minor: device.map(|device| device.minor),
                xattrs: &entry.attributes.xattrs,
            },
            inode: entry.number.number(),
        }
    }
}

/// A line of `--json` for a file in an image.
#[derive(Serialize)]
struct JsonInner<'a> {
    #[serde(rename = "ref")]
    reference: &'a str,
    path: String,
    #[serde(rename = "type")]
    file_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

impl<'a> JsonInner<'a> {
    fn new(reference: &'a str, path: String, file: &InnerFile) -> Self {
        let target = file.target.as_ref().map(|target| escape::percent(target));
        let (file_type, size) = if target.is_some() { ("symlink", None) } else { ("file", Some(file.size)) };
        Self { reference, path, file_type, size, target }
    }
}

/// Returns the change as comparisons print it.
fn change_of(becomes: Becomes) -> Change {
    match becomes {
        Becomes::Added => Change::Added,
        Becomes::Changed => Change::Changed,
        Becomes::Metadata => Change::Metadata,
        Becomes::Removed => Change::Removed,
    }
}

/// A line of `--json` for a delta bundle.
#[derive(Serialize)]
struct JsonEdit<'a> {
    #[serde(rename = "ref")]
    reference: &'a str,
    path: String,
    kind: &'static str,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    file_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

impl<'a> JsonEdit<'a> {
    fn of(edit: &EditedName<'a>) -> Self {
        Self {
            reference: edit.reference,
            path: if edit.path.is_empty() { ".".into() } else { escape::percent(&edit.path) },
            kind: Words::USUAL.of(change_of(edit.becomes)),
            file_type: edit.file_type.map(FileType::word),
            size: edit.size,
        }
    }
}
