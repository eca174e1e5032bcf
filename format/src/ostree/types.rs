//! Type strings of GVariant.

use alloc::vec::Vec;

use super::Malformed;
use super::framing::Shape;

/// The deepest nesting of containers in type strings and variants. GLib allows 128.
pub(super) const DEPTH_MAX: u32 = 64;

/// The length in bytes of the longest type string. GLib has no limit; those of OSTree have a few dozen bytes.
const LEN_MAX: usize = 4096;

const WRONG: Malformed = Malformed::new("a type string is not that of one type");

/// A complete type, as the list of the types in it, in the order of its type string.
#[derive(Debug)]
pub(super) struct Type {
    nodes: Vec<Node>,
}

/// A type within a type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Its first character.
    pub(super) code: u8,
    pub(super) shape: Shape,
    /// One past the position of the last type in it.
    end: usize,
}

impl Type {
    /// Parses a type string.
    ///
    /// # Errors
    /// Returns an error if it is not one complete definite type, is longer than 4096 bytes, or nests deeper than `depth`.
    pub(super) fn parse(text: &[u8], depth: u32) -> Result<Self, Malformed> {
        if text.len() > LEN_MAX {
            return Err(Malformed::new("a type string has more than 4096 bytes"));
        }
        let mut parser = Parser { nodes: Vec::new(), rest: text };
        parser.node(depth)?;
        if parser.rest.is_empty() { Ok(Self { nodes: parser.nodes }) } else { Err(WRONG) }
    }

    /// Returns whether `text` is a sequence of complete types, as a signature is.
    pub(super) fn is_sequence(text: &[u8]) -> bool {
        let mut parser = Parser { nodes: Vec::new(), rest: text };
        while !parser.rest.is_empty() {
            if parser.node(DEPTH_MAX).is_err() {
                return false;
            }
        }
        // The limit of D-Bus.
        text.len() <= 255
    }

    pub(super) fn node(&self, at: usize) -> Result<Node, Malformed> {
        self.nodes.get(at).copied().ok_or(WRONG)
    }

    /// Returns the member types of the type at `at`, with their positions.
    pub(super) fn parts(&self, at: usize) -> impl Iterator<Item = (usize, Node)> + Clone + '_ {
        let end = self.nodes.get(at).map_or(0, |node| node.end);
        let mut next = at + 1;
        core::iter::from_fn(move || {
            let node = self.nodes.get(next).filter(|_| next < end)?;
            Some((core::mem::replace(&mut next, node.end), *node))
        })
    }
}

struct Parser<'a> {
    nodes: Vec<Node>,
    rest: &'a [u8],
}

impl Parser<'_> {
    fn node(&mut self, depth: u32) -> Result<Shape, Malformed> {
        let (&code, rest) = self.rest.split_first().ok_or(WRONG)?;
        self.rest = rest;
        let at = self.nodes.len();
        self.nodes.push(Node { code, shape: Shape::BYTES, end: at + 1 });
        let shape = match basic(code) {
            Some(shape) => shape,
            None => self.container(code, depth.checked_sub(1).ok_or(TOO_DEEP)?)?,
        };
        let end = self.nodes.len();
        if let Some(node) = self.nodes.get_mut(at) {
            *node = Node { code, shape, end };
        }
        Ok(shape)
    }

    fn container(&mut self, code: u8, depth: u32) -> Result<Shape, Malformed> {
        match code {
            b'v' => Ok(Shape::VARIANT),
            b'a' | b'm' => Ok(Shape::variable(self.node(depth)?.align)),
            b'(' => {
                let mut shapes = Vec::new();
                while !self.takes(b')') {
                    shapes.push(self.node(depth)?);
                }
                Ok(joined(&shapes))
            }
            b'{' => {
                if self.rest.first().is_none_or(|key| basic(*key).is_none()) {
                    return Err(WRONG);
                }
                let shapes = [self.node(depth)?, self.node(depth)?];
                if self.takes(b'}') { Ok(joined(&shapes)) } else { Err(WRONG) }
            }
            _ => Err(WRONG),
        }
    }

    fn takes(&mut self, code: u8) -> bool {
        let rest = self.rest.strip_prefix(&[code]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

pub(super) const TOO_DEEP: Malformed = Malformed::new("containers nest deeper than 64");

fn basic(code: u8) -> Option<Shape> {
    match code {
        b'y' | b'b' => Some(Shape::fixed(1)),
        b'n' | b'q' => Some(Shape::fixed(2)),
        b'i' | b'u' | b'h' => Some(Shape::fixed(4)),
        b'x' | b't' | b'd' => Some(Shape::fixed(8)),
        b's' | b'o' | b'g' => Some(Shape::BYTES),
        _ => None,
    }
}

/// Returns the shape of a tuple. Its size cannot overflow: each character of a type string adds at most 8 bytes and 7 bytes of padding.
fn joined(members: &[Shape]) -> Shape {
    let align = members.iter().map(|shape| shape.align).max().unwrap_or(1);
    let end = members.iter().try_fold(0, |at: usize, shape| Some(at.next_multiple_of(shape.align) + shape.size?));
    Shape { align, size: end.map(|end| end.max(1).next_multiple_of(align)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        let cases = [
            ("y", 1, Some(1)),
            ("()", 1, Some(1)),
            ("(yu)", 4, Some(8)),
            ("(uy)", 4, Some(8)),
            ("(t(yn))", 8, Some(16)),
            ("{sv}", 8, None),
            ("a{sv}", 8, None),
            ("a(say)", 1, None),
            ("mu", 4, None),
            ("(ys)", 1, None),
        ];
        for (text, align, size) in cases {
            let parsed = Type::parse(text.as_bytes(), DEPTH_MAX).expect(text);
            assert_eq!(parsed.node(0).expect("it has a node").shape, Shape { align, size }, "{text}");
        }
    }

    #[test]
    fn what_is_no_type() {
        for text in ["", "r", "*", "?", "yy", "a", "(", "(y", ")", "{s}", "{vs}", "{svv}", "{sv", "m", "z", "a)"] {
            assert!(Type::parse(text.as_bytes(), DEPTH_MAX).is_err(), "{text}");
        }
        let deep = |len| [&*alloc::vec![b'a'; len], b"y"].concat();
        assert!(Type::parse(&deep(64), DEPTH_MAX).is_ok());
        assert_eq!(Type::parse(&deep(65), DEPTH_MAX).expect_err("it is deep"), TOO_DEEP);
        assert!(Type::parse(&deep(5000), DEPTH_MAX).is_err());
        assert!(Type::is_sequence(b"") && Type::is_sequence(b"ya{sv}") && !Type::is_sequence(b"a"));
    }
}
