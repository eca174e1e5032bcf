//! Descriptions of small trees.

/// A file of any type.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its type and content.
    pub what: What,
    /// Permissions.
    pub mode: u16,
    /// Owner and group.
    pub owner: (u32, u32),
    /// Seconds and nanoseconds.
    pub mtime: (i64, u32),
    /// Names and values.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The type and content of a file.
#[derive(Clone, Debug)]
pub enum What {
    /// The names in a directory.
    Directory(Vec<(Vec<u8>, Node)>),
    /// A file's content.
    Regular(Vec<u8>),
    /// A link's target.
    Symlink(Vec<u8>),
    /// Type bits, major and minor number.
    Device(u16, u32, u32),
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// Another name of an earlier inode, by its number.
    Link(u32),
}

fn node(what: What, mode: u16) -> Node {
    Node { what, mode, owner: (0, 0), mtime: (1_700_000_000, 0), xattrs: Vec::new() }
}

/// Returns a directory.
pub fn dir<const N: usize>(names: [(&str, Node); N]) -> Node {
    let names = names.into_iter().map(|(name, node)| (name.as_bytes().to_vec(), node));
    node(What::Directory(names.collect()), 0o755)
}

/// Returns a regular file.
pub fn file(content: impl Into<Vec<u8>>) -> Node {
    node(What::Regular(content.into()), 0o644)
}

/// Returns a symbolic link.
pub fn symlink(target: &str) -> Node {
    node(What::Symlink(target.into()), 0o777)
}

/// Returns a character device.
pub fn char_device(major: u32, minor: u32) -> Node {
    node(What::Device(0x2000, major, minor), 0o666)
}

/// Returns a block device.
pub fn block_device(major: u32, minor: u32) -> Node {
    node(What::Device(0x6000, major, minor), 0o660)
}

/// Returns a named pipe.
pub fn fifo() -> Node {
    node(What::Fifo, 0o600)
}

/// Returns a socket.
pub fn socket() -> Node {
    node(What::Socket, 0o700)
}

/// Returns another name of an inode.
pub fn link(inode: u32) -> Node {
    node(What::Link(inode), 0)
}

impl Node {
    /// Returns the node with these permissions.
    pub fn mode(mut self, mode: u16) -> Self {
        self.mode = mode;
        self
    }

    /// Returns the node with this owner and group.
    pub fn owner(mut self, uid: u32, gid: u32) -> Self {
        self.owner = (uid, gid);
        self
    }

    /// Returns the node with this time.
    pub fn mtime(mut self, seconds: i64, nanoseconds: u32) -> Self {
        self.mtime = (seconds, nanoseconds);
        self
    }

    /// Returns the node with an additional extended attribute.
    pub fn xattr(mut self, name: &str, value: &[u8]) -> Self {
        self.xattrs.push((name.into(), value.into()));
        self
    }

    /// Returns the directory with an additional name.
    pub fn with(mut self, name: &[u8], node: Node) -> Self {
        if let What::Directory(names) = &mut self.what {
            names.push((name.into(), node));
        }
        self
    }

    /// Returns the type and permission bits, as in `st_mode`.
    pub fn st_mode(&self) -> u16 {
        let kind = match self.what {
            What::Directory(_) => 0x4000,
            What::Regular(_) | What::Link(_) => 0x8000,
            What::Symlink(_) => 0xa000,
            What::Device(kind, ..) => kind,
            What::Fifo => 0x1000,
            What::Socket => 0xc000,
        };
        kind | self.mode
    }
}

/// Returns `len` bytes with a period that divides no power of two.
pub fn paint(seed: u8, len: usize) -> Vec<u8> {
    (0..251).cycle().take(len).map(|byte: u8| byte ^ seed).collect()
}
