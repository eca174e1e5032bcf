//! Lower bounds on this machine: bare loops that do only the work that every such program must do, on as many threads as Sealift. `cargo xtask
//! compare` runs them as: cargo bench --bench floor -- TREE NEW RUNS, where NEW is a folder that is created and removed.
#![allow(clippy::unwrap_used, reason = "a bench")]

use std::env;
use std::error::Error;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use sha2::{Digest as _, Sha256};
use zstd_safe::{CCtx, CParameter, DCtx};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Bytes of files that are compressed together, with the parameters of `sealift pack --force --level 3`.
const GROUP_LEN: usize = 2 << 20;
const PARAMETERS: [CParameter; 3] =
    [CParameter::CompressionLevel(3), CParameter::HashLog(16), CParameter::ChainLog(15)];

/// Files of one group, with their lengths.
type Group = Vec<(PathBuf, usize)>;

/// The state of a thread.
struct Tools {
    compressor: CCtx<'static>,
    decompressor: DCtx<'static>,
    data: Vec<u8>,
    packed: Vec<u8>,
}

fn main() -> Result<()> {
    // Cargo adds an option of its own.
    let words: Vec<String> = env::args().skip(1).filter(|word| word != "--bench").collect();
    let [tree, new, runs] = &words[..] else {
        println!("floor: cargo xtask compare --only floor");
        return Ok(());
    };
    let (tree, new, runs) = (Path::new(tree), Path::new(new), runs.parse::<u32>()?);
    let threads = std::thread::available_parallelism()?.get();
    let groups = groups(tree)?;
    let (mut pack, mut unpack, mut deep) = (Duration::MAX, Duration::MAX, Duration::MAX);
    let (mut from_repository, mut to_repository) = (Duration::MAX, Duration::MAX);
    for _ in 0..runs {
        for (path, _) in groups.iter().flatten() {
            fs::read(path)?;
        }
        let begun = Instant::now();
        let packed = each(threads, groups.len(), |tools, number| tools.pack(&groups[number], false))?;
        pack = pack.min(begun.elapsed());

        let begun = Instant::now();
        each(threads, groups.len(), |tools, number| tools.pack(&groups[number], true))?;
        from_repository = from_repository.min(begun.elapsed());

        let begun = Instant::now();
        each(threads, groups.len(), |tools, number| {
            tools.unpack(&groups[number], &packed[number], |_, data| {
                hash_blocks(data);
                Ok(())
            })
        })?;
        deep = deep.min(begun.elapsed());

        make_directories(tree, new)?;
        let begun = Instant::now();
        each(threads, groups.len(), |tools, number| {
            tools.unpack(&groups[number], &packed[number], |path, data| {
                let path = new.join(path.strip_prefix(tree)?);
                let mut file = File::create_new(&path)?;
                file.write_all(data)?;
                Ok(file.set_modified(SystemTime::UNIX_EPOCH)?)
            })
        })?;
        unpack = unpack.min(begun.elapsed());
        fs::remove_dir_all(new)?;

        make_folders(new)?;
        let begun = Instant::now();
        each(threads, groups.len(), |tools, number| {
            tools.unpack(&groups[number], &packed[number], |_, data| put_object(new, data))
        })?;
        to_repository = to_repository.min(begun.elapsed());
        fs::remove_dir_all(new)?;
    }
    println!(
        "Bare loops over the same tree in one process, on {} threads, the best of {runs}. The list of files and all directories are there \
         before the clock starts; nothing is listed, ordered, deduplicated, indexed, signed or written behind a head.\n\n\
         - pack, {:.2} s: open, read, BLAKE3, SHA-256 of each 4096-byte block, compress 2 MiB at a time, BLAKE3 of the result\n\
         - unpack in memory, {:.2} s: decompress, BLAKE3, create, write, set the time, close\n\
         - verify --deep, {:.2} s: decompress, BLAKE3, SHA-256 of each 4096-byte block\n\
         - pack of an OSTree repository, {:.2} s: as pack, and SHA-256 of each file\n\
         - unpack into a bare-user repository, {:.2} s: decompress, BLAKE3, SHA-256, create in one of 256 directories, write, set an \
         extended attribute of 32 bytes, close; none where another file had the same content",
        threads,
        pack.as_secs_f64(),
        unpack.as_secs_f64(),
        deep.as_secs_f64(),
        from_repository.as_secs_f64(),
        to_repository.as_secs_f64(),
    );
    Ok(())
}

/// Returns the files of a tree in path order, in groups of about 2 MiB.
fn groups(tree: &Path) -> Result<Vec<Group>> {
    let mut files = Vec::new();
    list(tree, &mut files)?;
    files.sort_unstable();
    let mut groups: Vec<Group> = vec![Vec::new()];
    let mut len = 0;
    for file in files {
        if len > 0 && len + file.1 > GROUP_LEN {
            groups.push(Vec::new());
            len = 0;
        }
        len += file.1;
        groups.last_mut().unwrap().push(file);
    }
    Ok(groups)
}

fn list(dir: &Path, files: &mut Vec<(PathBuf, usize)>) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            list(&entry.path(), files)?;
        } else if metadata.is_file() {
            files.push((entry.path(), usize::try_from(metadata.len())?));
        }
    }
    Ok(())
}

/// Runs `work` on the numbers below `count`, on several threads. Returns the results in order.
fn each<R: Send>(threads: usize, count: usize, work: impl Fn(&mut Tools, usize) -> Result<R> + Sync) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut tools = Tools::new().unwrap();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    let result = work(&mut tools, number);
                    results.lock().unwrap().push((number, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

impl Tools {
    fn new() -> Result<Self> {
        let mut compressor = CCtx::create();
        for parameter in PARAMETERS {
            compressor.set_parameter(parameter).map_err(zstd_error)?;
        }
        Ok(Self { compressor, decompressor: DCtx::create(), data: Vec::new(), packed: Vec::new() })
    }

    fn pack(&mut self, group: &Group, has_checksums: bool) -> Result<Vec<u8>> {
        self.data.clear();
        for (path, len) in group {
            let start = self.data.len();
            File::open(path)?.read_to_end(&mut self.data)?;
            assert_eq!(self.data.len() - start, *len, "{} changed", path.display());
            std::hint::black_box(blake3::hash(&self.data[start..]));
            hash_blocks(&self.data[start..]);
            if has_checksums {
                std::hint::black_box(Sha256::digest(&self.data[start..]));
            }
        }
        self.packed.resize(zstd_safe::compress_bound(self.data.len()), 0);
        let len = self.compressor.compress2(&mut self.packed[..], &self.data).map_err(zstd_error)?;
        std::hint::black_box(blake3::hash(&self.packed[..len]));
        Ok(self.packed[..len].to_vec())
    }

    fn unpack(&mut self, group: &Group, packed: &[u8], take: impl Fn(&Path, &[u8]) -> Result<()>) -> Result<()> {
        self.data.resize(group.iter().map(|(_, len)| len).sum(), 0);
        std::hint::black_box(blake3::hash(packed));
        self.decompressor.decompress(&mut self.data[..], packed).map_err(zstd_error)?;
        let mut rest = &self.data[..];
        for (path, len) in group {
            let (data, behind) = rest.split_at(*len);
            std::hint::black_box(blake3::hash(data));
            take(path, data)?;
            rest = behind;
        }
        Ok(())
    }
}

fn zstd_error(code: usize) -> Box<dyn Error + Send + Sync> {
    format!("zstd: {}", zstd_safe::get_error_name(code)).into()
}

fn hash_blocks(data: &[u8]) {
    for block in data.chunks(4096) {
        std::hint::black_box(Sha256::digest(block));
    }
}

/// Creates the directories of a repository's objects.
fn make_folders(to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    (0..=u8::MAX).try_for_each(|number| Ok(fs::create_dir(to.join(format!("{number:02x}")))?))
}

/// Writes an object's file, named by the checksum of its content alone.
fn put_object(objects: &Path, data: &[u8]) -> Result<()> {
    let checksum: String = Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut file = match File::create_new(objects.join(&checksum[..2]).join(&checksum[2..])) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(()),
        made => made?,
    };
    file.write_all(data)?;
    Ok(rustix::fs::fsetxattr(&file, "user.ostreemeta", &[0; 32], rustix::fs::XattrFlags::empty())?)
}

fn make_directories(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_directories(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
