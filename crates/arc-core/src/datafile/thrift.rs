//! Thrift's compact protocol: as much of it as the headers of pages and a footer are made of (parquet-format,
//! `parquet.thrift`).
//!
//! Appends to what it is given, and allocates nothing of its own. Never reads, never knows what a field means.

use super::encode::{push_varint, zigzag};

/// What a field or an element of a list is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Byte = 3,
    I32 = 5,
    I64 = 6,
    Binary = 8,
    List = 9,
    Struct = 12,
}

/// A struct under way: its fields come in the order of their numbers.
pub(super) struct Struct<'a> {
    out: &'a mut Vec<u8>,
    last: u8,
}

impl<'a> Struct<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self::after(0, out)
    }

    /// Goes on with one whose last field was this one.
    pub(super) fn after(last: u8, out: &'a mut Vec<u8>) -> Self {
        Self { out, last }
    }

    /// Ends it.
    pub(super) fn end(self) {
        self.out.push(0);
    }

    fn begin(&mut self, field: u8, kind: u8) {
        self.out.push((field - self.last) << 4 | kind);
        self.last = field;
    }

    pub(super) fn boolean(&mut self, field: u8, value: bool) {
        self.begin(field, if value { 1 } else { 2 });
    }

    pub(super) fn byte(&mut self, field: u8, value: u8) {
        self.begin(field, Kind::Byte as u8);
        self.out.push(value);
    }

    /// Appends a number of 32 bits that has no sign: one of an enumeration, a size, a count.
    pub(super) fn i32(&mut self, field: u8, value: u32) {
        self.begin(field, Kind::I32 as u8);
        push_varint(zigzag(value.into()), self.out);
    }

    /// Appends a number of 64 bits that has no sign.
    pub(super) fn i64(&mut self, field: u8, value: u64) {
        self.begin(field, Kind::I64 as u8);
        push_varint(zigzag(value), self.out);
    }

    pub(super) fn binary(&mut self, field: u8, value: &[u8]) {
        self.begin(field, Kind::Binary as u8);
        push_binary(value, self.out);
    }

    pub(super) fn structure(&mut self, field: u8, fill: impl FnOnce(&mut Struct<'_>)) {
        self.begin(field, Kind::Struct as u8);
        push_struct(self.out, fill);
    }

    /// Appends a list, whose elements `fill` does.
    pub(super) fn list(&mut self, field: u8, kind: Kind, len: usize, fill: impl FnOnce(&mut Vec<u8>)) {
        self.begin(field, Kind::List as u8);
        match u8::try_from(len) {
            Ok(len @ ..15) => self.out.push(len << 4 | kind as u8),
            _ => {
                self.out.push(0xf0 | kind as u8);
                push_varint(len as u64, self.out);
            }
        }
        fill(self.out);
    }
}

/// Appends a whole struct: an element of a list, or what stands for itself.
pub(super) fn push_struct(out: &mut Vec<u8>, fill: impl FnOnce(&mut Struct<'_>)) {
    let mut fields = Struct::new(out);
    fill(&mut fields);
    fields.end();
}

/// Appends bytes as an element of a list.
pub(super) fn push_binary(bytes: &[u8], out: &mut Vec<u8>) {
    push_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends a number of an enumeration as an element of a list.
pub(super) fn push_i32(value: u32, out: &mut Vec<u8>) {
    push_varint(zigzag(value.into()), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_protocol() {
        let mut out = Vec::new();
        push_struct(&mut out, |fields| {
            fields.i32(1, 2);
            fields.i64(3, 300);
            fields.binary(4, b"ab");
            fields.boolean(5, true);
            fields.boolean(6, false);
            fields.structure(10, |fields| fields.byte(1, 64));
            fields.list(11, Kind::I32, 2, |out| [0, 3].into_iter().for_each(|value| push_i32(value, out)));
            fields.list(12, Kind::Binary, 15, |out| (0..15).for_each(|_| push_binary(b"", out)));
        });
        let mut expected = vec![0x15, 4, 0x26, 0xd8, 0x04, 0x18, 2, b'a', b'b', 0x11, 0x12, 0x4c, 0x13, 64, 0];
        expected.extend([0x19, 0x25, 0, 6, 0x19, 0xf8, 15]);
        expected.extend([0; 16]);
        assert_eq!(out, expected);
    }
}
