// The parameters and results of the package's functions. Numbers are whole; sizes are in bytes, times in seconds since 1970.

/** What is wrong with a bundle, as the program's kinds of failure. */
export type Kind =
  | "header" | "layout" | "index" | "path" | "chunk" | "object" | "truncated" | "trailing" | "unsupported" | "limit"
  | "signature" | "untrusted" | "revoked" | "expired" | "downgrade" | "incompatible";

/**
 * Why the result is undetermined: "changed" if the file changed while it was read, "trust-file" if a text of the policy is malformed, "base" if a
 * base of a delta is missing, is another one, cannot be read or is damaged.
 */
export type Doubt = "io" | "changed" | "trust-file" | "base";

/** Thrown if a bundle must not be used, or if that is undetermined. */
export class SealiftError extends Error {
  constructor(code: Kind | Doubt, message: string, cause?: unknown, place?: Place);
  readonly code: Kind | Doubt;
  /** The first damaged part, if that is a chunk or an object. */
  readonly place?: Place;
  /** Whether the file does not begin like a bundle: with the code "header", it is another kind of file. */
  readonly isForeign: boolean;
  /** Of a bundle in volumes: which of them are at fault, if that is known. */
  readonly volumes?: VolumeFault;
}

/** What is wrong with the volumes of a bundle. */
export interface VolumeFault {
  /**
   * Some are not there; two files are the same one; one is of another set; one ends too early, or goes on after its end; one does not begin where the
   * one before ends; its header is damaged or wrong; its part of the bundle is damaged.
   */
  what: "missing" | "twice" | "other-set" | "cut" | "longer" | "gap" | "header" | "damaged";
  /** The numbers of these volumes, from 1, as far as they are known. */
  numbers: number[];
  /** How many volumes the bundle has, if that is known. */
  count?: number;
  /** The names of the files at fault. */
  files: string[];
}

/** One of the files of a bundle that was split. */
export interface Volume {
  file: Blob;
  /** From 1. */
  number: number;
  /** Where its part of the bundle begins in the file. */
  sliceAt: number;
}

/** The number of a chunk, or of an object of the index. */
export interface Place {
  chunk?: number;
  object?: number;
}

/** The files that damage affects. */
export interface Damage {
  count: number;
  /** The first of them, escaped for display. */
  names: string[];
}

/** The source of a bundle's bytes. */
export type BundleSource =
  | Blob
  /** The volumes of a bundle that was split: all of them, in any order. They are read where they are. */
  | Blob[]
  /**
   * A URL, which may be relative to the page's. It is read by Range requests; a server without them sends the whole file, which is then read as a
   * stream. In Node, a string without a scheme and a `file:` URL are paths.
   */
  | string
  | URL
  /** The bytes themselves; Node's Buffer is a Uint8Array. */
  | Uint8Array
  /** Read once, in order: files of the bundle cannot be opened afterwards. */
  | ReadableStream<Uint8Array>
  /** The same, such as Node's Readable. */
  | AsyncIterable<Uint8Array>
  /** A FileHandle of Node's fs/promises. It stays open. */
  | { readonly fd: number; stat(): Promise<{ size: number }> }
  /** `read` returns at most `length` bytes from `offset` on, and none only at the end of the file. It is called again for the rest. */
  | { readonly size: number; read(offset: number, length: number, signal?: AbortSignal): Uint8Array | Promise<Uint8Array> };

/** The keys that are trusted, and what the device accepts. */
export interface Policy extends JudgeOptions {
  /** The text of an OpenSSH `allowed_signers` file: lines `NAMES namespaces="sealift" TYPE KEY`. Without it, no key is trusted. */
  allowedSigners?: string | Uint8Array;
}

export interface JudgeOptions {
  /** Default: the clock. */
  now?: number;
  /** The number of distinct trusted keys that are needed, or rules `N` and `PATTERN=N`. */
  threshold?: number | string[];
  /** The device's tags. */
  compatible?: string[];
  /** A revocation list: text, or a KRL of `ssh-keygen -k`. */
  revoked?: string | Uint8Array;
  /** The lowest version that is accepted, or several floors, of which the highest counts. */
  floor?: string | Floor | (string | Floor)[];
  /** Waives the need for a trusted signature, and nothing else. */
  allowUnsigned?: boolean;
  allowDowngrade?: boolean;
}

/** A floor that a bundle raised. */
export interface Floor {
  /** The bundle's version, as its decimal digits. */
  version: string;
  /**
   * The fingerprints of the trusted keys that had signed the bundle, as in `Signer.key`: `SHA256:...`. If some of them are revoked, the floor counts
   * only while the others are as many as the threshold: a version that a stolen key signed must not block updates for ever.
   */
  keys: string[];
}

/** The URLs of the package's parts. */
export interface Places {
  /** The URL of pkg/sealift_wasm_bg.wasm, if it was moved. Default: where a bundler puts it, or beside the package's scripts. */
  wasmUrl?: string | URL;
  /** The URL of src/worker.js, or of the module that a bundler makes from it. Default: the same. */
  workerUrl?: string | URL;
  /** The URL of pkg/sealift_inside_bg.wasm, which `inside` of an open bundle loads. Default: as for `wasmUrl`. */
  insideUrl?: string | URL;
}

export interface OpenOptions extends Policy, Places {
  signal?: AbortSignal;
  /** Called once the signatures are judged, before the layout and the index are read. */
  onHead?(head: Head, verdict: Verdict): void;
  /**
   * Called while a server is waited for: once nothing has come of this bundle for five seconds, and then each second; when a request failed and will be
   * made again; and with `undefined` as soon as bytes come again, or the read ends. If several requests run at once, bytes of any of them end the wait.
   */
  onWait?(wait: Wait | undefined): void;
  /**
   * Bytes of memory that the bundle may take. One that declares more is refused with the code `limit`, once its head is read. Default and maximum:
   * 1 GiB, since a worker's memory ends at 4 GiB.
   */
  memory?: number;
}

/** The wait for a server. */
export interface Wait {
  /** Whole seconds since the last byte came, or since the first request. */
  seconds: number;
  /** The number of the request that is made, or will be made after a pause, and the number after which it is given up. */
  attempt: number;
  attempts: number;
  /** Why the last request failed, if one failed since the last byte came. */
  reason?: string;
}

export interface VerifyOptions {
  /** Also decompresses, and checks the content of each file, its fs-verity digest and, in OSTree commits, its checksum. Default: false. */
  deep?: boolean;
  /**
   * The base of a delta bundle, or all of its bases in any order: full bundles that were opened from a Blob, a Uint8Array, a URL, a path or a
   * FileHandle. Sources that workers cannot open (bytes, and in Node a Blob that is a file) are copied to memory. The bases are checked deeply
   * first, and then the full bundle that results, with all of its files. Every fault of a base is an error with the code "base". Afterwards the
   * delta bundle lists and opens files like a full one, and the bases may be closed.
   */
  base?: Bundle | Bundle[];
  /** Also returns the file's SHA-256, of the bytes as they are checked. It is sequential, and slows down checks that are not deep. Default: false. */
  sha256?: boolean;
  signal?: AbortSignal;
  onProgress?(progress: Progress): void;
  /** The number of workers, at most six for a URL. Default: one per core. */
  jobs?: number;
  /**
   * Bytes of memory for the readers of all workers, of which there are fewer if they do not fit; the reader of the open bundle stays in any case.
   * Default: the limit with which the bundle was opened, or 256 MiB. What one reader takes follows from the bundle's root: index and layout, 96
   * bytes for each row of their tables, twice the largest chunk, and about 32 MiB.
   */
  memory?: number;
}

export interface Progress {
  phase: "verifying";
  /** Stored bytes of chunks. */
  bytes: number;
  bytesTotal: number;
  /** Since the check began. */
  seconds: number;
}

/** What the root states. Until it is judged, anybody could have written it. */
export interface Head {
  name: string;
  /** A u64, as its decimal digits. */
  version: string;
  created: number;
  expires?: number;
  /** The tags of compatible devices; none means all devices. */
  compatible: string[];
  /** The identity of the content, in hexadecimal digits. */
  indexDigest: string;
  /** BLAKE3 of the signed bytes, in hex: it names this bundle, whoever signs it. */
  rootDigest: string;
  /** The publisher's notes: keys and values, escaped for display. */
  annotations: [key: string, value: string][];
  /** Of a delta bundle: the bases that a target must have. */
  delta?: { bases: Base[] };
  /** The composefs images of its trees, as stated: the number of the ref, from 0, the version of the image format, and the fs-verity digest. */
  images: { ref: number; version: number; digest: string }[];
  fileBytes: number;
  layoutBytes: number;
  indexBytes: number;
  chunksBytes: number;
  /** Of all regular files. */
  logicalBytes: number;
  /** Bytes that unpacking takes on ext4 with blocks of 4096 bytes, within a few percent; of a delta bundle, in addition to its base. */
  diskBytes: number;
  entries: number;
  objects: number;
  chunks: number;
  /** The bytes that are signed. */
  signed: Uint8Array;
}

/** A base of a delta bundle. */
export interface Base {
  /** The name and version of the bundle that was the base, as the publisher states them, if known. */
  name?: string;
  version?: string;
  /** The digest of the base's index, in hexadecimal digits: it alone identifies the base. */
  indexDigest: string;
}

export interface Verdict {
  /** The bundle may be used, and enough trusted keys signed it. */
  trusted: boolean;
  /** The number of distinct trusted keys that must have signed. */
  needed: number;
  /** The lowest version that is accepted, of the floors that count. */
  floor?: string;
  /** Each signature; `key` is missing if the signature is not valid. One that is `unsupported` does not count and is no error. */
  signers: Signer[];
  /** Whether there is a signature for the kernel, which does not count here: only a kernel that has the certificate checks it. */
  kernelSignature: boolean;
  /** Kinds of envelopes that this version does not know; they do not count. */
  unknownEnvelopes: number[];
  /** Why the bundle must not be used. If this is missing and `trusted` is false, the bundle is unsigned, which was allowed. */
  error?: { code: Kind; message: string };
}

export interface Signer {
  /** The fingerprint, as `ssh-keygen -l` prints it. */
  key?: string;
  keyType?: string;
  /** The key in the form of a `.pub` file, without a comment. */
  publicKey?: string;
  /** The comment in the allowed signers. */
  comment?: string;
  /** The signature is valid, but the allowed signers do not list its key. */
  unknown: boolean;
  /** The signature is by a key or an algorithm that this version does not accept, so that it was not checked. Nothing shows that `key` signed. */
  unsupported: boolean;
  trusted: boolean;
  status: string;
}

export interface Summary {
  entries: number;
  /** Regular files, each counted once however many names it has. For a delta bundle, this is known only with its bases. */
  files?: number;
  /** Their bytes, unpacked. */
  bytes: number;
  /**
   * How many contents of files recipes make, if any do. This reader makes none, so that it compared only the data of which they are made. The device
   * compares each content when it makes it.
   */
  made?: number;
  /** Of a delta bundle: its changes to its first base. Names in OSTree commits are counted only if it was checked over its bases. */
  delta?: {
    /** The bases that a target must have. */
    bases: Base[];
    /**
     * Names that are new, that get another content or type, of which only metadata changes, and that are removed. A new or removed directory
     * counts once, with everything below it.
     */
    added: number;
    changed: number;
    metadata: number;
    removed: number;
  };
}

/** The result for a bundle of which every byte is undamaged. */
export interface Verified {
  head: Head;
  verdict: Verdict;
  summary: Summary;
  deep: boolean;
  /** The bases over which a delta bundle was checked, in the order of its root. */
  bases?: Head[];
  /** The file's SHA-256 in hexadecimal digits, if requested. */
  sha256?: string;
  seconds: number;
}

/** A named tree. */
export interface Ref {
  name: string;
  /** The number of its root, for `children`. */
  directory: number;
  /** Entries of the root. */
  children: number;
}

/** What the trees have; the head also counts what only parents of OSTree commits bring. */
export interface Listed {
  entries: number;
  /** Bytes of the files. */
  bytes: number;
}

export type FileType = "file" | "dir" | "symlink" | "char" | "block" | "fifo" | "socket";

export interface Entry {
  /** Its number. */
  entry: number;
  ref: string;
  /** For display, escaped like the program's output. */
  name: string;
  /** The whole path for display. */
  shown: string;
  /** As in `sealift ls --json`: each byte of a `%`, of a control or bidirectional control character, or of invalid UTF-8 is `%` and two digits. */
  path: string;
  type: FileType;
  mode: number;
  uid: number;
  gid: number;
  mtime: number;
  /** Of files. */
  size?: number;
  /** Of symbolic links, escaped for display. */
  target?: string;
  major?: number;
  minor?: number;
  /** Entries with equal numbers are hard links of one file. */
  inode: number;
  /** Of directories: the number to pass to `children`, and the number of entries. */
  directory?: number;
  children?: number;
}

/** An image, an archive or a compressed file in a bundle. What is in a compressed file is opened with it. */
export interface Container {
  /** What it is: squashfs, erofs, ext4, fat, gpt, mbr, iso9660, cpio, tar, ar, zip, pe, appimage, gzip, xz, zstd, lz4 or bzip2. */
  readonly kind: string;
  /** Entries of its root. */
  readonly entries: number;
  /** Returns `count` entries of a directory from `from` on; all by default. The root is directory 0. */
  children(directory?: number, from?: number, count?: number): Promise<InnerEntry[]>;
  /** Opens a file. What is damaged in it rejects when it is read. */
  open(entry: InnerEntry, signal?: AbortSignal): Promise<ReadableStream<Uint8Array>>;
  /** Returns bytes of a file, fewer if it ends before. */
  read(entry: InnerEntry, offset: number, length: number, signal?: AbortSignal): Promise<Uint8Array>;
  /** Writes a file to a handle, in browsers only. */
  write(entry: InnerEntry, handle: FileHandleOfPage, options?: WriteOptions): Promise<void>;
  /** As `inside` of a bundle, for a file in this container. */
  inside(entry: InnerEntry, options?: { signal?: AbortSignal }): Promise<Container | Opaque | undefined>;
}

/** A container that is not taken apart. */
export interface Opaque {
  /** Why: it is damaged, uses a feature that is not known, or takes more memory or time than it may. */
  readonly opaque: string;
}

/**
 * A file, a directory or a symbolic link in a container. Partitions of a disk are files with their numbers as names, and the content of a compressed
 * file is one without a name.
 */
export interface InnerEntry {
  /** For display, escaped like the program's output. */
  name: string;
  /** The whole path in the container, for display. */
  shown: string;
  /** The same as in `Entry`. */
  path: string;
  type: "file" | "dir" | "symlink";
  /** Of files: the number of the file. Names with equal numbers are hard links. */
  file?: number;
  size?: number;
  /** Of symbolic links, escaped for display. */
  target?: string;
  /** Of directories: the number to pass to `children`, and the number of entries. */
  directory?: number;
  children?: number;
}

/** A change of a name that a delta bundle lists. */
export interface Edit {
  ref: string;
  /** For display, escaped like the program's output. */
  name: string;
  path: string;
  kind: "added" | "changed" | "metadata" | "removed";
  /** Whether the directory that contains it is new. In `Summary`, that counts once, with everything below it. */
  belowNew: boolean;
  type?: FileType;
  size?: number;
}

/** The changes from an older bundle to a newer one. */
export interface Comparison {
  /** A new or removed directory counts once, with everything below it; "metadata" are the names of which nothing else changes. */
  added: number;
  changed: number;
  metadata: number;
  removed: number;
  /** The first of them. */
  rows: Change[];
}

export interface Change {
  kind: "added" | "changed" | "metadata" | "removed";
  ref: string;
  /** For display, escaped like the program's output. */
  name: string;
  path: string;
  type: FileType;
  /** The size of a file in bytes. */
  before?: number;
  after?: number;
}

/** What a delta bundle changes without listing names. */
export interface Unlisted {
  /** The OSTree commits among the refs: names that change in them are not listed. */
  commits: string[];
  /** Whether files that are not listed get another time. */
  times: boolean;
}

/** What the chunks hold, in stored bytes. */
export interface Picture {
  /** The hot set. */
  hot: number;
  /** Files that lie completely in one chunk, alone or with others. */
  small: number;
  /** Files in several pieces, each of which is a chunk. */
  large: number;
  /** Chunks that stand for several equal pieces. */
  shared: number;
  /** Unpacked bytes of files whose content is that of another file. */
  saved: number;
  /** If the chunks are divided into equal parts, what takes most of each part. */
  columns: ("hot" | "small" | "large" | "shared")[];
  /** The entries of the largest files. */
  largest: Uint32Array;
}

/** A browser's FileSystemFileHandle, which Node's types lack. */
export interface FileHandleOfPage {
  readonly kind: "file";
  readonly name: string;
}

export interface WriteOptions {
  /** Whether the file lies in the page's own folder, `navigator.storage.getDirectory`: it is then written in place, and stays if writing fails. */
  isOwn?: boolean;
  signal?: AbortSignal;
  /** Called with the number of bytes of each part that was written. If it throws, writing ends. */
  onPart?: (bytes: number) => void;
}

/** An open bundle. It has workers until it is closed. */
export interface Bundle {
  readonly head: Head;
  /** The verdict of the last judgement. */
  readonly verdict: Verdict;
  /** Whether its files can be listed: those of a delta bundle can, once it was checked over its bases. */
  readonly isWhole: boolean;
  /** The volumes from which it was opened, in order. */
  readonly volumes?: Volume[];
  /** Whether files can be opened; not if the bundle came as a stream. */
  readonly isSeekable: boolean;
  /** Where each chunk begins, in bytes from the first chunk, and where the last one ends. */
  readonly chunkOffsets: Float64Array;
  /** Judges again. Options that are left out keep their values. */
  judge(policy: Policy): Promise<Verdict>;
  /** Checks every byte, also of a bundle whose verdict is an error: look at that as well. Rejects with a SealiftError. */
  verify(options?: VerifyOptions): Promise<Verified>;
  /** Returns the files that a damaged part affects, of a delta among the names that it lists. At most `limit` names, 10 by default. */
  hit(place: Place, limit?: number): Promise<Damage>;
  /** Returns the SHA-256 of bytes, in hexadecimal digits. */
  sha256(bytes: Uint8Array): Promise<string>;
  listed(): Promise<Listed>;
  refs(): Promise<Ref[]>;
  /** Returns `count` entries of a directory from `from` on; all by default. */
  children(directory: number, from?: number, count?: number): Promise<Entry[]>;
  entries(numbers: ArrayLike<number>): Promise<Entry[]>;
  /** Returns the numbers of the entries with this text in their names or, if it contains a slash, in their paths. */
  search(text: string): Promise<Uint32Array>;
  /** Returns the changes that a delta bundle lists without its bases; none once it is whole. */
  edits(): Promise<Edit[]>;
  /** Returns what a delta bundle changes without listing names; `undefined` for other bundles, and once it is whole. */
  unlisted(): Promise<Unlisted | undefined>;
  /** Returns the changes from the first base to a delta bundle that is whole; at most `limit` are listed, 10,000 by default. */
  changes(limit?: number): Promise<Comparison>;
  /** Returns the changes from an older bundle to this one; at most `limit` are listed, 10,000 by default. */
  compare(older: Bundle, limit?: number): Promise<Comparison>;
  picture(columns: number): Promise<Picture>;
  /** Opens a file at `[REF:]PATH`, or an entry. Rejects with the verdict's error if the bundle must not be used. */
  open(what: string | Uint8Array | Entry): Promise<ReadableStream<Uint8Array>>;
  /** Returns bytes of a file, fewer if it ends before. Reads only the chunks that hold them, and rejects as `open` does. */
  read(what: string | Uint8Array | Entry, offset: number, length: number): Promise<Uint8Array>;
  /**
   * Opens an image, an archive or a compressed file, to list and read the files in it; `undefined` if the file is none of a known kind. Rejects as `open`
   * does.
   */
  inside(what: string | Uint8Array | Entry, options?: { signal?: AbortSignal }): Promise<Container | Opaque | undefined>;
  /** Writes a file to a handle, in browsers only: a large file takes less memory than with `open`. */
  write(entry: Entry, handle: FileHandleOfPage, options?: WriteOptions): Promise<void>;
  close(): void;
}

/** Opens a bundle: head, layout and index. Its `verdict` says whether trusted keys signed it. */
export function openBundle(source: BundleSource, options?: OpenOptions): Promise<Bundle>;

/** Checks signatures and every byte, as `sealift verify` does. Rejects with a SealiftError; if the verdict is an error, before the rest is read. */
export function verify(source: BundleSource, options?: OpenOptions & VerifyOptions): Promise<Verified>;

/**
 * Checks that a policy can be used, without a bundle. Rejects with the code "trust-file" if the allowed signers, the revocation list, a threshold or
 * a tag is malformed: the message says which, and in which line. The options `wasmUrl` and `workerUrl` are those of `openBundle`.
 */
export function checkPolicy(policy: Policy, places?: Places): Promise<void>;

/**
 * Loads the package's parts as `openBundle` does, without a bundle. Rejects if the code or the worker cannot be loaded, with a sentence that names the
 * option and the attribute to set: call it when the page starts, so that a build without them fails at once.
 */
export function ready(places?: Places): Promise<void>;
