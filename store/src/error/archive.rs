//! Why an archive cannot be packed.

/// The reason why an archive cannot be packed. Names in it are escaped, since they are not trusted yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveFault {
    /// It is shorter than its headers say.
    #[error("the archive is cut off")]
    Truncated,
    /// The blocks of zeros that end an archive are missing.
    #[error("the archive is cut off: the blocks of zeros that end it are missing")]
    NoEnd,
    /// Data after the end may be a second archive, which some programs would read and others not.
    #[error("more bytes follow the archive's end: two archives are joined by `tar -A`")]
    BeyondEnd,
    /// A fault specific to one archive format, as its reader words it.
    #[error("{0}")]
    Form(String),
    /// A header is invalid.
    #[error("a header's checksum is wrong: the archive is damaged, or is not a tar archive")]
    Checksum,
    /// A number is malformed or out of range.
    #[error("not a tar archive, or a damaged one: the {field} is not a valid number")]
    Number {
        /// The number's field.
        field: &'static str,
    },
    /// An extended header is malformed.
    #[error("the extended header is malformed")]
    Pax,
    /// A record of an extended header has an invalid value.
    #[error("the extended header's record {keyword} has an invalid value")]
    PaxValue {
        /// The record.
        keyword: String,
    },
    /// Extended attributes that no file can have.
    #[error(
        "the member has extended attributes that no file can have: names have 1 to 255 bytes, values up to 65536, and a file has up to 65535"
    )]
    Xattrs,
    /// A record for one member is in a global header.
    #[error("a global extended header sets {keyword}, which belongs to one member")]
    PaxGlobal {
        /// The record.
        keyword: String,
    },
    /// An extended header is too long.
    #[error("an extended header has {len} bytes; {max} are read at most")]
    ExtensionTooLong {
        /// Its length.
        len: u64,
        /// The maximum length.
        max: u64,
    },
    /// Two extended headers of one kind describe one member.
    #[error("two extended headers of one kind describe one member")]
    ExtensionTwice,
    /// An extended header without a member.
    #[error("an extended header at the end describes no member")]
    ExtensionAlone,
    /// An ACL in text form names a user or group without a number.
    #[error(
        "the ACL names {who} without a number, and this machine's users are not the archive's: \
         make the archive with `tar --xattrs`, which keeps ACLs as numbers"
    )]
    AclName {
        /// The user or group.
        who: String,
    },
    /// The list of a sparse file's segments is malformed, or contradicts its sizes.
    #[error("the list of segments of a sparse file is malformed, or does not agree with the file's size")]
    SparseMap,
    /// An unknown version of the sparse formats.
    #[error("the form of a sparse file is not known")]
    SparseVersion,
    /// A size for a member without content: some programs skip as many bytes, some none.
    #[error("{path} has no content, yet a size of {size}")]
    SizeWithoutContent {
        /// The member.
        path: String,
        /// Its size.
        size: u64,
    },
    /// A member of an unknown type.
    #[error("{path} is of type {type_flag}, which cannot be packed")]
    Type {
        /// The member.
        path: String,
        /// The type's letter.
        type_flag: String,
    },
    /// A name that cannot be in a tree.
    #[error("{path}: a name {fault}")]
    Name {
        /// The member.
        path: String,
        /// What is wrong with the name.
        fault: &'static str,
    },
    /// A symbolic link whose target cannot be in a tree.
    #[error("{path}: the link's target {fault}")]
    Target {
        /// The link.
        path: String,
        /// What is wrong with the target.
        fault: &'static str,
    },
    /// A member lies below something that is not a directory.
    #[error("{path} lies beneath {parent}, which is not a directory")]
    NotDirectory {
        /// The member.
        path: String,
        /// The parent.
        parent: String,
    },
    /// A later member would replace a non-empty directory.
    #[error("{path} takes the place of a directory that is not empty")]
    ReplacesDirectory {
        /// The member.
        path: String,
    },
    /// A hard link to a missing member.
    #[error("{path} is a hard link to {target}, which no earlier member is")]
    LinkToNothing {
        /// The link.
        path: String,
        /// The link's target.
        target: String,
    },
    /// A hard link to a directory.
    #[error("{path} is a hard link to {target}, which is a directory")]
    LinkToDirectory {
        /// The link.
        path: String,
        /// The link's target.
        target: String,
    },
}

/// Formats bytes from an archive for a message: anything that a terminal could interpret as a command is escaped.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter.is_control() { text.extend(letter.escape_default()) } else { text.push(letter) }
        }
        text.extend(chunk.invalid().escape_ascii().map(char::from));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        assert_eq!(shown(b"a\x1b[31m\xffb\xc3\xa4"), "a\\u{1b}[31m\\xffb\u{e4}");
    }
}
