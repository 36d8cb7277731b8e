//! The pull face: an iterator of points whose tags and fields are iterators again.
//!
//! Everything borrows the input. A point was checked to its last byte when it is yielded, so its
//! parts cannot fail; they are found again when asked for, which costs a second pass over them.

use core::fmt;
use core::iter::FusedIterator;
use core::ops::Range;

use crate::error::{Error, ErrorKind};
use crate::push::{Series, Sink};
use crate::record::{Body, Position, Walker};
use crate::scan;
use crate::text::{Escapes, Text};
use crate::value::{FieldValue, RawValue};
use crate::window::Window;

/// Iterates over the points of `input`; goes on after an error.
///
/// ```
/// # fn main() -> Result<(), arc_lp::Error> {
/// use arc_lp::FieldValue;
///
/// let input = b"pump,id=7 rpm=1450i,state=\"on\" 1700000000000000000";
/// for point in arc_lp::points(input) {
///     let point = point?;
///     assert_eq!(point.measurement().as_str(), Some("pump"));
///     for (key, value) in point.fields() {
///         match value {
///             FieldValue::Integer(rpm) => assert_eq!((key.as_str(), rpm), (Some("rpm"), 1450)),
///             FieldValue::String(state) => assert_eq!(state, "on"),
///             _ => unreachable!(),
///         }
///     }
///     assert_eq!(point.timestamp(), Some(1_700_000_000_000_000_000));
/// }
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn points(input: &[u8]) -> Points<'_> {
    Points { window: Window::new(input), position: Position { at: 0, line: 1 } }
}

/// Iterator of the points in an input; see [`points`].
#[derive(Clone)]
pub struct Points<'a> {
    window: Window<'a>,
    position: Position,
}

impl<'a> Iterator for Points<'a> {
    type Item = Result<Point<'a>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let mut walker = Walker::at(&mut self.window, self.position);
        let record = walker.record(&mut Check);
        self.position = walker.position();
        Some(record?.map(|body| Point::new(self.window.input(), body)))
    }
}

impl FusedIterator for Points<'_> {}

impl fmt::Debug for Points<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Points").finish_non_exhaustive()
    }
}

/// Reads everything, keeps nothing.
struct Check;

impl<'a> Sink<'a> for Check {
    #[inline(always)]
    fn series(&mut self, _: u64, _: &'a [u8]) -> Series {
        Series::Unknown
    }
    #[inline(always)]
    fn measurement(&mut self, _: Text<'a>) {}
    #[inline(always)]
    fn tag(&mut self, _: Text<'a>, _: Text<'a>) {}
    #[inline(always)]
    fn field(&mut self, _: Text<'a>, _: FieldValue<'a>) {}
    #[inline(always)]
    fn raw_field(&mut self, _: Text<'a>, value: RawValue<'a>) -> Result<(), ErrorKind> {
        value.parse().map(|_| ())
    }
    #[inline(always)]
    fn point(&mut self, _: Option<i64>) {}
    #[inline(always)]
    fn error(&mut self, _: Error) {}
}

/// A good record.
#[derive(Copy, Clone)]
pub struct Point<'a> {
    series_key: &'a [u8],
    fields: &'a [u8],
    timestamp: Option<i64>,
    line: u64,
    start: usize,
    end: usize,
}

impl<'a> Point<'a> {
    fn new(input: &'a [u8], body: Body) -> Self {
        let record = input.get(body.start..).unwrap_or_default();
        Self {
            series_key: record.get(..body.key_end - body.start).unwrap_or_default(),
            fields: input.get(body.fields_start..body.fields_end).unwrap_or_default(),
            timestamp: body.timestamp,
            line: body.line,
            start: body.start,
            end: body.end,
        }
    }

    /// Returns the measurement.
    #[must_use]
    pub fn measurement(&self) -> Text<'a> {
        take_text(self.series_key, Escapes::Measurement, b',').0
    }

    /// Returns the bytes from the start of the record to the first unescaped space: measurement and
    /// tags as sent. Equal bytes are the same series; the same series may be spelled in many ways.
    #[must_use]
    pub const fn series_key(&self) -> &'a [u8] {
        self.series_key
    }

    /// Returns the tags in input order; repeated keys are all yielded.
    #[must_use]
    pub fn tags(&self) -> Tags<'a> {
        Tags { rest: take_text(self.series_key, Escapes::Measurement, b',').1 }
    }

    /// Returns the fields in input order; repeated keys are all yielded. There is at least one.
    #[must_use]
    pub const fn fields(&self) -> Fields<'a> {
        Fields { all: self.fields, at: 0 }
    }

    /// Returns the timestamp as written: its unit is the caller's to know.
    #[must_use]
    pub const fn timestamp(&self) -> Option<i64> {
        self.timestamp
    }

    /// Returns the physical line, counted from 1, on which the record starts.
    #[must_use]
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// Returns where in the input the record is, without the blanks around it and its line end.
    #[must_use]
    pub const fn byte_range(&self) -> Range<usize> {
        self.start..self.end
    }
}

impl fmt::Debug for Point<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Point")
            .field("measurement", &self.measurement())
            .field("tags", &self.tags())
            .field("fields", &self.fields())
            .field("timestamp", &self.timestamp)
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

/// Iterator of the tags of a [`Point`]: key and value.
#[derive(Clone)]
pub struct Tags<'a> {
    /// Empty, or a comma and what follows.
    rest: &'a [u8],
}

impl<'a> Iterator for Tags<'a> {
    type Item = (Text<'a>, Text<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (key, rest) = take_text(self.rest.strip_prefix(b",")?, Escapes::Name, b'=');
        let (value, rest) = take_text(rest.strip_prefix(b"=")?, Escapes::Name, b',');
        self.rest = rest;
        Some((key, value))
    }
}

impl FusedIterator for Tags<'_> {}

impl fmt::Debug for Tags<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.clone()).finish()
    }
}

/// Iterator of the fields of a [`Point`]: key and value.
#[derive(Clone)]
pub struct Fields<'a> {
    all: &'a [u8],
    /// Where the next field begins; behind the end after the last one.
    at: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Text<'a>, FieldValue<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (key, rest) = take_text(self.all.get(self.at..)?, Escapes::Name, b'=');
        let start = self.all.len() - rest.strip_prefix(b"=")?.len();
        let (value, end) = take_value(self.all, start);
        self.at = end + 1;
        Some((key, value.parse().ok()?))
    }
}

impl FusedIterator for Fields<'_> {}

impl fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.clone()).finish()
    }
}

/// Takes the value at `start` of a checked field list, and the place of the comma behind it.
#[inline]
fn take_value(all: &[u8], start: usize) -> (RawValue<'_>, usize) {
    let value = all.get(start..).unwrap_or_default();
    if let [b'"', string @ ..] = value {
        let (text, rest) = take_text(string, Escapes::String, b'"');
        return (RawValue::string(text), all.len() - rest.len() + 1);
    }
    let length = scan::find(value, 0, [b',']);
    let end = start + length;
    (RawValue::bare(all.get(..end).unwrap_or(all), length), end)
}

/// Splits at the first `end` that has no escape in front.
#[inline]
fn take_text(bytes: &[u8], escapes: Escapes, end: u8) -> (Text<'_>, &[u8]) {
    let (mut at, mut is_escaped) = (0, false);
    loop {
        at = scan::find(bytes, at, [end, b'\\']);
        if bytes.get(at) != Some(&b'\\') {
            break;
        }
        let is_escape = bytes.get(at + 1).is_some_and(|&next| escapes.covers(next));
        is_escaped |= is_escape;
        at += 1 + usize::from(is_escape);
    }
    let (raw, rest) = bytes.split_at_checked(at).unwrap_or((bytes, &[]));
    (Text::new(raw, escapes, is_escaped), rest)
}
