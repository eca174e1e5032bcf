// What the package's functions take and give. Numbers are whole; sizes are bytes, moments seconds since 1970.

/** What is wrong with a bundle, in the program's words. */
export type Kind =
  | "header" | "layout" | "index" | "path" | "chunk" | "object" | "truncated" | "trailing" | "unsupported" | "limit"
  | "signature" | "untrusted" | "revoked" | "expired" | "downgrade" | "incompatible";

/** Why it could not be told: "changed" where it was another file meanwhile, "trust-file" where the policy's texts are malformed, "base" where a delta's base
 * is not it, or cannot be read, or is damaged. */
export type Doubt = "io" | "changed" | "trust-file" | "base";

/** A bundle that must not be used, or of which it could not be told. */
export class SealiftError extends Error {
  constructor(code: Kind | Doubt, message: string, cause?: unknown, place?: Place);
  readonly code: Kind | Doubt;
  /** The first part that is damaged, where it is one of these. */
  readonly place?: Place;
  /** Whether the bytes do not begin as those of a bundle do: with code "header", another kind of file. */
  readonly isForeign: boolean;
}

/** A chunk, or an object of the index, by its number. */
export interface Place {
  chunk?: number;
  object?: number;
}

/** The files that damage hits. */
export interface Damage {
  count: number;
  /** The first of them; what a screen could act on is escaped. */
  names: string[];
}

/** Where a bundle comes from. */
export type BundleSource =
  | Blob
  /**
   * An address, from the page's where it is relative. It is read by Range requests; a server that knows none sends the file, which is then read as
   * a stream. In Node a string without a scheme, and a URL of a file, are a path.
   */
  | string
  | URL
  /** Its bytes; Node's Buffer is one. */
  | Uint8Array
  /** Read once, in its order: nothing can be opened in it afterwards. */
  | ReadableStream<Uint8Array>
  /** The same, as Node's Readable is. */
  | AsyncIterable<Uint8Array>
  /** A FileHandle of Node's fs/promises. It stays open. */
  | { readonly fd: number; stat(): Promise<{ size: number }> }
  /** `read` gives `length` bytes from `offset` on, or fewer; none where the file ends. It is called again when the last call has ended. */
  | { readonly size: number; read(offset: number, length: number, signal?: AbortSignal): Uint8Array | Promise<Uint8Array> };

/** Who is trusted, and what the device is. */
export interface Policy extends JudgeOptions {
  /** OpenSSH's file: lines `NAMES namespaces="sealift" TYPE KEY`. Without it nobody is trusted. */
  allowedSigners?: string | Uint8Array;
}

export interface JudgeOptions {
  /** Default: the clock. */
  now?: number;
  /** Distinct trusted keys needed, or rules `N` and `PATTERN=N`. */
  threshold?: number | string[];
  /** The tags that the device answers to. */
  compatible?: string[];
  /** A revocation list as `ssh-keygen -r` takes it. */
  revoked?: string | Uint8Array;
  /** The lowest version that is taken. */
  floor?: string;
  /** Waives the need for a trusted signature and nothing else. */
  allowUnsigned?: boolean;
  allowDowngrade?: boolean;
}

export interface OpenOptions extends Policy {
  signal?: AbortSignal;
  /** Called as soon as it is known who signed, when nothing else is. */
  onHead?(head: Head, verdict: Verdict): void;
  /** Where pkg/sealift_wasm_bg.wasm lies, for who moves it. Default: where a bundler puts it, or beside the package's scripts. */
  wasmUrl?: string | URL;
  /** Where src/worker.js lies, or what a bundler makes of it: a module. Default: as before. */
  workerUrl?: string | URL;
  /**
   * Bytes of memory that the bundle may take. One that declares more is refused with the code `limit`, before anything of it is kept. Default,
   * and the most: 1 GiB, of the 4 GiB at which a worker's memory ends.
   */
  memory?: number;
}

export interface VerifyOptions {
  /** Also decompresses, and checks each file's content, its fs-verity digest and, of OSTree, its checksum. Default: false. */
  deep?: boolean;
  /**
   * Of a delta bundle its base, or all of them in any order: full bundles that were opened from anything but a stream. What workers cannot open
   * by themselves (bytes, and in Node a Blob that is a file) is copied to memory. They are checked deeply first, and then the full bundle that
   * results, with all of its files. Whatever is wrong with a base is an error with the code "base". From then on the delta bundle lists
   * and opens files as a full bundle does; the bases may be closed.
   */
  base?: Bundle | Bundle[];
  /** Also gives the file's SHA-256, of the bytes as they are checked. It has one order, which holds up checks that are not deep. Default: false. */
  sha256?: boolean;
  signal?: AbortSignal;
  onProgress?(progress: Progress): void;
  /** Workers. Default: as many as there are cores. */
  jobs?: number;
  /**
   * Bytes of memory for the readers of all workers, of which there are fewer if they do not fit; that of an open bundle stays in any case.
   * Default: as the bundle was opened with, else 256 MiB. What one takes follows from the bundle's root: its index and layout, 96 bytes
   * for each row of its tables, twice its largest chunk, and 32 MiB.
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

/** What the root states. Until it is judged, anybody may have written it. */
export interface Head {
  name: string;
  /** A u64, as its decimal digits. */
  version: string;
  created: number;
  expires?: number;
  /** The tags of the devices that it fits; none means all. */
  compatible: string[];
  /** The identity of the content, in hexadecimal digits. */
  indexDigest: string;
  /** The publisher's words: keys and values, in which what a screen could act on is escaped. */
  annotations: [key: string, value: string][];
  /** Of a delta bundle: what a target is to hold. */
  delta?: { bases: Base[] };
  /** The composefs images of its trees, as they are stated: the number of the ref, from 0, the form, and the fs-verity digest, as in `sha256:` and digits. */
  images: { ref: number; version: number; digest: string }[];
  fileBytes: number;
  layoutBytes: number;
  indexBytes: number;
  chunksBytes: number;
  /** Of all regular files. */
  logicalBytes: number;
  /** What unpacking takes on ext4 with blocks of 4096 bytes, within a few percent; of a delta bundle, beyond what its base takes. */
  diskBytes: number;
  entries: number;
  objects: number;
  chunks: number;
  /** The bytes that signatures are over. */
  signed: Uint8Array;
}

/** What a delta bundle is relative to. */
export interface Base {
  /** The name and version of the bundle that it was, as its publisher says, where that is known. */
  name?: string;
  version?: string;
  /** The digest of the index that a target is to hold, in hexadecimal digits: it alone decides. */
  indexDigest: string;
}

export interface Verdict {
  /** The bundle may be used, and enough trusted keys signed it. */
  trusted: boolean;
  /** Distinct trusted keys that have to have signed. */
  needed: number;
  /** Each signature; `key` is left out where it is not a good one of that key. */
  signers: Signer[];
  /** Whether there is a signature for the kernel, which counts for nothing here: only a kernel that has the certificate checks it. */
  kernelSignature: boolean;
  /** Kinds of envelopes that this version does not know; they count for nothing. */
  unknownEnvelopes: number[];
  /** Why the bundle must not be used. Neither this nor `trusted`: it is unsigned, and that was allowed. */
  error?: { code: Kind; message: string };
}

export interface Signer {
  /** As `ssh-keygen -l` writes it. */
  key?: string;
  keyType?: string;
  /** The key in the form of a `.pub` file, without a comment. */
  publicKey?: string;
  /** The comment in the allowed signers. */
  comment?: string;
  /** The signature is good, and the allowed signers do not list its key. */
  unknown: boolean;
  trusted: boolean;
  status: string;
}

export interface Summary {
  entries: number;
  /** Regular files, a hard link counted once. Of a delta bundle this takes its bases. */
  files?: number;
  /** Their bytes, unpacked. */
  bytes: number;
  /** Of a delta bundle: what it does to its first base. Names in OSTree commits are among them where it was checked over its bases. */
  delta?: {
    /** What a target is to hold. */
    bases: Base[];
    /** Names that come, that get another content or type, of which only metadata change, and that go, each with all below it. */
    added: number;
    changed: number;
    metadata: number;
    removed: number;
  };
}

/** Every byte of the bundle is sound. */
export interface Verified {
  head: Head;
  verdict: Verdict;
  summary: Summary;
  deep: boolean;
  /** What a delta bundle was checked over, in the order of its root. */
  bases?: Head[];
  /** Of the file, in hexadecimal digits, where it was asked for. */
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

export type FileType = "file" | "dir" | "symlink" | "char" | "block" | "fifo" | "socket";

export interface Entry {
  /** Its number. */
  entry: number;
  ref: string;
  /** For showing: what a screen could act on is escaped. */
  name: string;
  /** The same of the whole path. */
  shown: string;
  /** As `sealift ls --json` has it: a byte of a control character, of a `%`, or of no valid UTF-8 is `%` and two digits. */
  path: string;
  type: FileType;
  mode: number;
  uid: number;
  gid: number;
  mtime: number;
  /** Of files. */
  size?: number;
  /** Of symbolic links, escaped for showing. */
  target?: string;
  major?: number;
  minor?: number;
  /** Equal numbers are one file. */
  inode: number;
  /** Of directories: the number for `children`, and how many those are. */
  directory?: number;
  children?: number;
}

/** What a delta bundle says of a name. */
export interface Edit {
  ref: string;
  /** For showing: what a screen could act on is escaped. */
  name: string;
  path: string;
  kind: "added" | "changed" | "metadata" | "removed";
  type?: FileType;
  size?: number;
}

/** What a bundle changes of an older one. */
export interface Comparison {
  /** Names that come and go count once, with all below them; "metadata" are those of which nothing else changes. */
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
  /** For showing: what a screen could act on is escaped. */
  name: string;
  path: string;
  type: FileType;
  /** Bytes of a file. */
  before?: number;
  after?: number;
}

/** What a delta bundle changes without naming it. */
export interface Unlisted {
  /** The refs that are OSTree commits: the names that change in them. */
  commits: string[];
  /** Whether files that are not listed have another time. */
  times: boolean;
}

/** What lies where among the chunks, in stored bytes. */
export interface Picture {
  /** The hot set of an order profile, which is first. */
  hot: number;
  /** Files that are whole in one chunk, alone or with others. */
  small: number;
  /** Files in pieces, each of which is a chunk. */
  large: number;
  /** Pieces that stand for several equal ones. */
  shared: number;
  /** Bytes of files, unpacked, whose content another one has as well. */
  saved: number;
  /** What most of each part is, if the chunks are divided into equal ones. */
  columns: ("hot" | "small" | "large" | "shared")[];
  /** Entries of the largest files. */
  largest: Uint32Array;
}

/** A browser's FileSystemFileHandle, which a server's types lack. */
export interface FileHandleOfPage {
  readonly kind: "file";
  readonly name: string;
}

export interface WriteOptions {
  /** The handle is of the page's own folder, `navigator.storage.getDirectory`: then it is written at once, and what is left of an attempt is there. */
  isOwn?: boolean;
  signal?: AbortSignal;
  /** Is told how many bytes were written by each part. What it throws ends the writing. */
  onPart?: (bytes: number) => void;
}

/** An open bundle. Close it: it has workers. */
export interface Bundle {
  readonly head: Head;
  /** As of the last judgement. */
  readonly verdict: Verdict;
  /** Whether its files can be listed: those of a delta bundle once it was checked over its bases. */
  readonly isWhole: boolean;
  /** Whether files can be opened: not those of what came as a stream. */
  readonly isSeekable: boolean;
  /** Where each chunk begins, in bytes from the first; and where the last one ends. */
  readonly chunkOffsets: Float64Array;
  /** Judges anew; what is left out is as of the opening. */
  judge(policy: Policy): Promise<Verdict>;
  /** Checks every byte. Of one whose verdict is an error, too: look at that. Rejects with a SealiftError. */
  verify(options?: VerifyOptions): Promise<Verified>;
  /** The files that a damaged part hits: of those of its index, or of the names that a delta brings. At most `limit` names, 10 by default. */
  hit(place: Place, limit?: number): Promise<Damage>;
  /** SHA-256 of bytes, in hexadecimal digits. */
  sha256(bytes: Uint8Array): Promise<string>;
  refs(): Promise<Ref[]>;
  /** `count` entries of a directory from `from` on; default: all. */
  children(directory: number, from?: number, count?: number): Promise<Entry[]>;
  entries(numbers: ArrayLike<number>): Promise<Entry[]>;
  /** The numbers of the entries with this text in their names; where it has a slash, in their paths. */
  search(text: string): Promise<Uint32Array>;
  /** What a delta bundle says of names without its bases; of one that is whole nothing. */
  edits(): Promise<Edit[]>;
  /** What a delta bundle changes without naming it, which is known once it is whole; of other bundles nothing. */
  unlisted(): Promise<Unlisted | undefined>;
  /** What a delta bundle that is whole changes of its first base; at most `limit` changes are listed, 10,000 by default. */
  changes(limit?: number): Promise<Comparison>;
  /** What this bundle changes of an older one; at most `limit` changes are listed, 10,000 by default. */
  compare(older: Bundle, limit?: number): Promise<Comparison>;
  picture(columns: number): Promise<Picture>;
  /** Opens a file at `[REF:]PATH`, or an entry. Rejects with the verdict's error if the bundle must not be used. */
  open(what: string | Uint8Array | Entry): Promise<ReadableStream<Uint8Array>>;
  /** Writes a file to where a handle leads, in a browser alone: a large one takes less memory than by `open`. */
  write(entry: Entry, handle: FileHandleOfPage, options?: WriteOptions): Promise<void>;
  close(): void;
}

/** Opens a bundle: head, layout and index. That somebody vouches for it says its `verdict`. */
export function openBundle(source: BundleSource, options?: OpenOptions): Promise<Bundle>;

/** Checks signatures and every byte, as `sealift verify` does. Rejects with a SealiftError, before it reads on if the verdict is one. */
export function verify(source: BundleSource, options?: OpenOptions & VerifyOptions): Promise<Verified>;
