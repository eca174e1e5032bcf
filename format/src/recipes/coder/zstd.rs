//! Parameters of libzstd.

use alloc::vec::Vec;

/// For each level, the logarithms of the lengths of window, chains and hash table (`ZSTD_defaultCParameters`), those of levels below 0 first.
const TABLES: [(u8, u8, u8); 23] = [
    (19, 12, 13),
    (19, 13, 14),
    (20, 15, 16),
    (21, 16, 17),
    (21, 18, 18),
    (21, 18, 19),
    (21, 18, 19),
    (21, 19, 20),
    (21, 19, 20),
    (22, 20, 21),
    (22, 21, 22),
    (22, 21, 22),
    (22, 22, 23),
    (22, 22, 22),
    (22, 22, 23),
    (22, 23, 23),
    (22, 22, 22),
    (23, 23, 22),
    (23, 23, 22),
    (23, 24, 22),
    (25, 25, 23),
    (26, 26, 24),
    (27, 27, 25),
];

const STREAMED: u8 = 1;
const PLEDGED: u8 = 2;
const CHECKED: u8 = 4;
const WORKER: u8 = 8;
const LONG: u8 = 16;
const UNSPLIT: u8 = 32;

/// The parameters of `ZSTD_compressCCtx` or `ZSTD_compressStream2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_structs, clippy::struct_excessive_bools, reason = "recipes 5 lists them")]
pub struct Zstd {
    /// 1 to 22, or -100 to -1.
    pub level: i8,
    /// How the input is passed; `None` for one call, which has no further parameters.
    pub stream: Option<ZstdStream>,
}

/// Parameters of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_structs, clippy::struct_excessive_bools, reason = "recipes 5 lists them")]
pub struct ZstdStream {
    /// Whether the length is stated before.
    pub is_pledged: bool,
    /// Whether the frame has a checksum.
    pub is_checked: bool,
    /// Whether a thread of the library encodes, as in the programs of zstd: its output does not depend on their number.
    pub has_worker: bool,
    /// Whether matches are searched for in the whole window.
    pub is_long: bool,
    /// Whether blocks are not split by their content, which libzstd 1.5.7 does and 1.5.6 did not; only for 1.5.7.
    pub is_unsplit: bool,
    /// The logarithm of the window's length in bytes: 10 to 27, or 0 for what the level has.
    pub window_log: u8,
}

impl Zstd {
    pub(super) fn parse(params: &[u8]) -> Option<Self> {
        let &[level, flags, window_log] = params else { return None };
        let level = i8::from_le_bytes([level]);
        let has = |flag: u8| flags & flag != 0;
        let stream = ZstdStream {
            is_pledged: has(PLEDGED),
            is_checked: has(CHECKED),
            has_worker: has(WORKER),
            is_long: has(LONG),
            is_unsplit: has(UNSPLIT),
            window_log,
        };
        let is_known = matches!(level, -100..=-1 | 1..=22) && flags < 2 * UNSPLIT && matches!(window_log, 0 | 10..=27);
        let is_one_call = flags == 0 && window_log == 0;
        let stream = has(STREAMED).then_some(stream);
        (is_known && (stream.is_some() || is_one_call)).then_some(Self { level, stream })
    }

    /// Parses the parameters of a version before 1.5.7, which has no `ZSTD_c_blockSplitterLevel`.
    pub(super) fn parse_older(params: &[u8]) -> Option<Self> {
        Self::parse(params).filter(|zstd| zstd.stream.is_none_or(|stream| !stream.is_unsplit))
    }

    pub(super) fn params(&self) -> Vec<u8> {
        let (mut flags, mut window_log) = (0, 0);
        if let Some(stream) = self.stream {
            flags = STREAMED;
            window_log = stream.window_log;
            let has = [
                (stream.is_pledged, PLEDGED),
                (stream.is_checked, CHECKED),
                (stream.has_worker, WORKER),
                (stream.is_long, LONG),
                (stream.is_unsplit, UNSPLIT),
            ];
            flags |= has.iter().filter(|(is_set, _)| *is_set).fold(0, |flags, (_, flag)| flags | flag);
        }
        [self.level.to_le_bytes()[0], flags, window_log].into()
    }

    /// Returns the logarithm of the window's length that the level has, without knowledge of the input.
    #[must_use]
    pub fn window_log(&self) -> u8 {
        self.tables().0
    }

    fn tables(&self) -> (u8, u8, u8) {
        TABLES.get(usize::try_from(self.level).unwrap_or(0)).copied().unwrap_or_default()
    }

    pub(super) fn memory(&self, input: u64) -> u64 {
        let (of_level, chains, hashes) = self.tables();
        let stated = self.stream.map_or(0, |stream| stream.window_log);
        let is_long = self.stream.is_some_and(|stream| stream.is_long);
        let most = match stated {
            // `ZSTD_LDM_DEFAULT_WINDOW_LOG`.
            0 if is_long => 27,
            0 => of_level,
            stated => stated,
        };
        let is_known = self.stream.is_none_or(|stream| stream.is_pledged);
        let content = if is_known { input.clamp(1 << 10, 1 << 27).next_power_of_two() } else { 1 << 27 };
        let window = (1 << most).min(content);
        let table = |log: u8| (1_u64 << log).min(2 * content);
        let tables = 4 * table(chains) + 6 * table(hashes) + (4 << 20);
        let buffers = match self.stream {
            // Room for the longest output (`ZSTD_COMPRESSBOUND`).
            None => input.saturating_add(input / 256 + (1 << 10)),
            Some(ZstdStream { has_worker: false, .. }) => window + (1 << 19),
            Some(_) => {
                let part = if is_long { (8 << chains).max(1 << 21) } else { (4 * window).max(1 << 20) };
                window + 5 * part
            }
        };
        let long = if is_long { window / 4 + (1 << 20) } else { 0 };
        buffers.saturating_add(tables + long)
    }
}
