//! MessagePack bytes as values, one after the other, after the specification of the format.
//!
//! Owns how a value is encoded and where a body is broken. Never copies text, never recurses by
//! what the body says, and never believes a length that the rest of the body cannot hold: the
//! thread that allocates by one allocates in proportion to the body.

use crate::buffer::TextColumn;

/// How deep arrays and maps may be nested within a value that no thread asked for.
const MAX_DEPTH: usize = 64;

/// A body that is not MessagePack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed {
    /// Byte where the value in question starts; the first is 0.
    pub(super) at: usize,
    pub(super) reason: &'static str,
}

/// A scalar, or the head of an array or map whose elements follow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum MsgpackValue<'a> {
    Nil,
    Boolean(bool),
    Integer(i64),
    /// Above `i64::MAX`.
    Unsigned(u64),
    Float(f64),
    /// Not checked to be UTF-8.
    Text(&'a [u8]),
    Binary,
    /// Number of elements.
    Array(usize),
    /// Number of pairs.
    Map(usize),
    Extension(i8, &'a [u8]),
}

impl MsgpackValue<'_> {
    /// Names the kind of value for an error text.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Boolean(_) => "a boolean",
            Self::Integer(_) | Self::Unsigned(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Text(_) => "a string",
            Self::Binary => "binary",
            Self::Array(_) => "an array",
            Self::Map(_) => "a map",
            Self::Extension(-1, _) => "a timestamp",
            Self::Extension(..) => "an extension",
        }
    }
}

/// A position in a body. A copy reads ahead without moving the original.
#[derive(Debug, Clone, Copy)]
pub(super) struct MsgpackReader<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> MsgpackReader<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        Self { body, at: 0 }
    }

    /// Returns the byte that is read next.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.body.len()
    }

    /// Returns the first byte of the next value.
    pub(super) fn peek(&self) -> Option<u8> {
        self.body.get(self.at).copied()
    }

    /// Returns what was read since `start`.
    pub(super) fn since(&self, start: &Self) -> &'a [u8] {
        self.body.get(start.at..self.at).unwrap_or(&[])
    }

    fn rest(&self) -> &'a [u8] {
        self.body.get(self.at..).unwrap_or(&[])
    }

    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.rest().first_chunk()?;
        self.at += N;
        Some(*bytes)
    }

    fn length<const N: usize>(&mut self) -> Option<usize> {
        let bytes: [u8; N] = self.fixed()?;
        Some(bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let bytes = self.rest().get(..length)?;
        self.at += length;
        Some(bytes)
    }

    /// Reads text of less than 32 bytes, as names are. Anything else is left unread.
    #[inline]
    pub(super) fn short_text(&mut self) -> Option<&'a [u8]> {
        let (marker, rest) = self.rest().split_first()?;
        let length = usize::from(marker.checked_sub(0xa0).filter(|length| *length < 0x20)?);
        let text = rest.get(..length)?;
        self.at += 1 + length;
        Some(text)
    }

    /// Reads a scalar, or the head of an array or map.
    #[inline]
    pub(super) fn next(&mut self) -> Result<MsgpackValue<'a>, Malformed> {
        match self.common() {
            Some(value) => Ok(value),
            None => self.uncommon(),
        }
    }

    /// Reads a value of a kind that data is made of. Anything else is left unread.
    #[inline]
    fn common(&mut self) -> Option<MsgpackValue<'a>> {
        let (marker, rest) = self.rest().split_first()?;
        let integer = |value: i64, size: usize| (MsgpackValue::Integer(value), size);
        let (value, size) = match *marker {
            0x00..=0x7f => integer(i64::from(*marker), 0),
            0xa0..=0xbf => {
                let length = usize::from(*marker & 0x1f);
                (MsgpackValue::Text(rest.get(..length)?), length)
            }
            0xc0 => (MsgpackValue::Nil, 0),
            0xc2 => (MsgpackValue::Boolean(false), 0),
            0xc3 => (MsgpackValue::Boolean(true), 0),
            0xca => (MsgpackValue::Float(f64::from(f32::from_be_bytes(*rest.first_chunk()?))), 4),
            0xcb => (MsgpackValue::Float(f64::from_be_bytes(*rest.first_chunk()?)), 8),
            0xcc => integer(i64::from(*rest.first()?), 1),
            0xcd => integer(i64::from(u16::from_be_bytes(*rest.first_chunk()?)), 2),
            0xce => integer(i64::from(u32::from_be_bytes(*rest.first_chunk()?)), 4),
            0xcf => {
                let value = u64::from_be_bytes(*rest.first_chunk()?);
                (i64::try_from(value).map_or(MsgpackValue::Unsigned(value), MsgpackValue::Integer), 8)
            }
            0xd0 => integer(i64::from(i8::from_be_bytes(*rest.first_chunk()?)), 1),
            0xd1 => integer(i64::from(i16::from_be_bytes(*rest.first_chunk()?)), 2),
            0xd2 => integer(i64::from(i32::from_be_bytes(*rest.first_chunk()?)), 4),
            0xd3 => integer(i64::from_be_bytes(*rest.first_chunk()?), 8),
            0xe0..=0xff => integer(i64::from(marker.cast_signed()), 0),
            _ => return None,
        };
        self.at += 1 + size;
        Some(value)
    }

    /// Reads the other values, and says what is wrong with what is none.
    fn uncommon(&mut self) -> Result<MsgpackValue<'a>, Malformed> {
        let start = self.at;
        let malformed = |reason| Err(Malformed { at: start, reason });
        let Some([marker]) = self.fixed() else { return malformed("the body ends, expected a value") };
        if marker == 0xc1 {
            return malformed("the byte 0xc1 begins no value");
        }
        let Some(value) = self.long(marker) else { return malformed("the body ends within a value") };
        let elements = match value {
            MsgpackValue::Array(elements) => elements,
            MsgpackValue::Map(pairs) => pairs.saturating_mul(2),
            _ => return Ok(value),
        };
        // An element has at least one byte.
        if elements > self.rest().len() {
            return malformed("an array or map has more elements than the rest of the body could hold");
        }
        Ok(value)
    }

    /// Reads the rest of a value; `None` where the body ends, as it does in every value that is not
    /// here.
    fn long(&mut self, marker: u8) -> Option<MsgpackValue<'a>> {
        match marker {
            0x80..=0x8f => Some(MsgpackValue::Map(usize::from(marker & 0x0f))),
            0x90..=0x9f => Some(MsgpackValue::Array(usize::from(marker & 0x0f))),
            0xc4 => self.length::<1>().and_then(|length| self.take(length)).map(|_| MsgpackValue::Binary),
            0xc5 => self.length::<2>().and_then(|length| self.take(length)).map(|_| MsgpackValue::Binary),
            0xc6 => self.length::<4>().and_then(|length| self.take(length)).map(|_| MsgpackValue::Binary),
            0xc7 => self.length::<1>().and_then(|length| self.extension(length)),
            0xc8 => self.length::<2>().and_then(|length| self.extension(length)),
            0xc9 => self.length::<4>().and_then(|length| self.extension(length)),
            0xd4..=0xd8 => self.extension(1 << (marker - 0xd4)),
            0xd9 => self.length::<1>().and_then(|length| self.take(length)).map(MsgpackValue::Text),
            0xda => self.length::<2>().and_then(|length| self.take(length)).map(MsgpackValue::Text),
            0xdb => self.length::<4>().and_then(|length| self.take(length)).map(MsgpackValue::Text),
            0xdc => self.length::<2>().map(MsgpackValue::Array),
            0xdd => self.length::<4>().map(MsgpackValue::Array),
            0xde => self.length::<2>().map(MsgpackValue::Map),
            0xdf => self.length::<4>().map(MsgpackValue::Map),
            _ => None,
        }
    }

    fn extension(&mut self, length: usize) -> Option<MsgpackValue<'a>> {
        let [kind] = self.fixed()?;
        Some(MsgpackValue::Extension(kind.cast_signed(), self.take(length)?))
    }

    /// Passes over a value with all that is in it.
    pub(super) fn skip(&mut self) -> Result<(), Malformed> {
        self.skip_nested(MAX_DEPTH)
    }

    fn skip_nested(&mut self, depth: usize) -> Result<(), Malformed> {
        let start = self.at;
        let elements = match self.next()? {
            MsgpackValue::Array(elements) => elements,
            MsgpackValue::Map(pairs) => pairs * 2,
            _ => return Ok(()),
        };
        let depth = depth
            .checked_sub(1)
            .ok_or(Malformed { at: start, reason: "arrays and maps are nested deeper than 64 levels" })?;
        (0..elements).try_for_each(|_| self.skip_nested(depth))
    }

    /// Reads `count` values if every one is an integer of 64 bits with a sign; otherwise nothing.
    pub(super) fn integers(&mut self, count: usize) -> Option<Vec<i64>> {
        let wide = |record: &[u8; 9]| record[0] == 0xd3 || (record[0] == 0xcf && record[1] < 0x80);
        if let Some(records) = self.records(count).filter(|records| records.iter().all(wide)) {
            self.at += count * 9;
            return Some(records.iter().map(|[_, bytes @ ..]| i64::from_be_bytes(*bytes)).collect());
        }
        let mut ahead = *self;
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            match ahead.common()? {
                MsgpackValue::Integer(value) => values.push(value),
                _ => return None,
            }
        }
        *self = ahead;
        Some(values)
    }

    /// Reads `count` values if every one is a float of 64 bits; otherwise nothing.
    pub(super) fn floats(&mut self, count: usize) -> Option<Vec<f64>> {
        let records = self.records(count).filter(|records| records.iter().all(|record| record[0] == 0xcb))?;
        self.at += count * 9;
        Some(records.iter().map(|[_, bytes @ ..]| f64::from_be_bytes(*bytes)).collect())
    }

    /// Looks at the next `count` values as if each had a marker and eight bytes.
    fn records(&self, count: usize) -> Option<&'a [[u8; 9]]> {
        let bytes = self.rest().get(..count.checked_mul(9)?)?;
        Some(bytes.as_chunks().0)
    }

    /// Reads `count` values if every one is text; otherwise nothing.
    pub(super) fn texts(&mut self, count: usize) -> Option<TextColumn> {
        let mut ahead = *self;
        // As if all were as long as a first short one; the body is longer than that.
        let short = self.peek().map_or(0, |marker| usize::from(marker.saturating_sub(0xa0) & 0x1f));
        let mut texts = TextColumn::for_rows(count, (count * short).min(self.rest().len()));
        for _ in 0..count {
            let text = match ahead.short_text() {
                Some(text) => text,
                None => match ahead.next() {
                    Ok(MsgpackValue::Text(text)) => text,
                    _ => return None,
                },
            };
            if !texts.push(text) {
                return None;
            }
        }
        if !texts.are_utf8() {
            return None;
        }
        *self = ahead;
        Some(texts)
    }
}
