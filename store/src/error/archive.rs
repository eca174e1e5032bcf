//! Why an archive cannot be packed.

use sealift_container::tar::TarFault;

/// The reason why an archive cannot be packed. Names in it are escaped, since they are not trusted yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveFault {
    /// It is shorter than its headers say.
    #[error("the archive is truncated")]
    Truncated,
    /// It is compressed.
    #[error("it is compressed with {program}")]
    Compressed {
        /// The program that decompresses it.
        program: &'static str,
        /// The format that it should have.
        scheme: &'static str,
    },
    /// The blocks of zeros that end an archive are missing.
    #[error("the archive is truncated: the zero blocks that end it are missing")]
    NoEnd,
    /// Data after the end may be a second archive, which some programs would read and others not.
    #[error("data follows the end of the archive")]
    BeyondEnd,
    /// A fault specific to one archive format, as its reader words it.
    #[error("{0}")]
    Form(String),
    /// A header of a tar archive cannot be read.
    #[error(transparent)]
    Tar(#[from] TarFault),
    /// A number is malformed or out of range.
    #[error("not a tar archive, or a damaged one: the {field} is not a valid number")]
    Number {
        /// The number's field.
        field: &'static str,
    },
    /// A record of an extended header has an invalid value.
    #[error("invalid value of {keyword} in an extended header")]
    PaxValue {
        /// The record.
        keyword: String,
    },
    /// Extended attributes that no file can have.
    #[error(
        "invalid extended attributes: a name has 1 to 255 bytes, a value up to 65536, and a file up to 65535 attributes"
    )]
    Xattrs,
    /// A record for one member is in a global header.
    #[error("a global extended header sets {keyword}, which is only valid for one member")]
    PaxGlobal {
        /// The record.
        keyword: String,
    },
    /// An extended header is too long.
    #[error("an extended header has {len} bytes, more than the limit of {max}")]
    ExtensionTooLong {
        /// Its length.
        len: u64,
        /// The maximum length.
        max: u64,
    },
    /// Two extended headers of one kind describe one member.
    #[error("two extended headers of the same type describe one member")]
    ExtensionTwice,
    /// An extended header without a member.
    #[error("no member follows the last extended header")]
    ExtensionAlone,
    /// An ACL in text form names a user or group without a number.
    #[error("the ACL names {who} without a numeric id, which sealift does not look up on this machine")]
    AclName {
        /// The user or group.
        who: String,
    },
    /// The list of a sparse file's segments is malformed, or contradicts its sizes.
    #[error("the map of a sparse file is malformed or does not match the file size")]
    SparseMap,
    /// An unknown version of the sparse formats.
    #[error("unknown sparse file format")]
    SparseVersion,
    /// Content after a member that cannot have any: some programs skip it, and some read it as headers.
    #[error("{path} cannot have content, but its header has a size of {size}")]
    SizeWithoutContent {
        /// The member.
        path: String,
        /// Its size.
        size: u64,
    },
    /// A member of an unknown type.
    #[error("{path} has type {type_flag}, which cannot be packed")]
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
    #[error("{path} is below {parent}, which is not a directory")]
    NotDirectory {
        /// The member.
        path: String,
        /// The parent.
        parent: String,
    },
    /// A later member would replace a non-empty directory.
    #[error("{path} would replace a non-empty directory")]
    ReplacesDirectory {
        /// The member.
        path: String,
    },
    /// A hard link to a missing member.
    #[error("{path} is a hard link to {target}, which is not an earlier member")]
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
