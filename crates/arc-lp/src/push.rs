//! The push face: the parser calls, the caller's [`Sink`] takes.
//!
//! The fastest way through this crate: nothing is stored between the parser and the sink, and every
//! call is known to the compiler.

use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind};
use crate::record::{Position, Visitor, Walker};
use crate::text::{Span, Text};
use crate::value::{FieldValue, RawValue};
use crate::window::Window;

/// Parses `input` to its end and delivers each record to `sink`, good or bad, in input order.
///
/// After a bad record parsing goes on after the next line feed at or after the place of the error.
///
/// ```
/// use arc_lp::{Error, FieldValue, Series, Sink, Text};
///
/// #[derive(Default)]
/// struct Total {
///     rpm: i64,
///     refused: Vec<u64>,
/// }
///
/// impl<'a> Sink<'a> for Total {
///     fn series(&mut self, _line: u64, _key: &'a [u8]) -> Series {
///         Series::Known // its tags are of no interest here
///     }
///     fn measurement(&mut self, _name: Text<'a>) {}
///     fn tag(&mut self, _key: Text<'a>, _value: Text<'a>) {}
///     fn field(&mut self, key: Text<'a>, value: FieldValue<'a>) {
///         if let (Some("rpm"), FieldValue::Integer(rpm)) = (key.as_str(), value) {
///             self.rpm += rpm;
///         }
///     }
///     fn point(&mut self, _timestamp: Option<i64>) {}
///     fn error(&mut self, error: Error) {
///         self.refused.push(error.line());
///     }
/// }
///
/// let mut total = Total::default();
/// let summary = arc_lp::parse(b"pump,id=7 rpm=1450i\npump,id=8 rpm\npump,id=9 rpm=1500i", &mut total);
/// assert_eq!((summary.points, summary.errors), (2, 1));
/// assert_eq!((total.rpm, total.refused), (2950, vec![2]));
/// ```
pub fn parse<'a, S: Sink<'a>>(input: &'a [u8], sink: &mut S) -> Summary {
    parse_with(input, Dialect::new(), sink)
}

/// As [`parse`], in a dialect.
///
/// ```
/// use arc_lp::*;
///
/// struct Paths(Vec<String>);
///
/// impl<'a> Sink<'a> for Paths {
///     fn tag(&mut self, _key: Text<'a>, value: Text<'a>) {
///         self.0.push(value.to_string());
///     }
/// #   fn series(&mut self, _: u64, _: &'a [u8]) -> Series { Series::Unknown }
/// #   fn measurement(&mut self, _: Text<'a>) {}
/// #   fn field(&mut self, _: Text<'a>, _: FieldValue<'a>) {}
/// #   fn point(&mut self, _: Option<i64>) {}
/// #   fn error(&mut self, _: Error) {}
/// }
///
/// let mut paths = Paths(Vec::new());
/// let dialect = Dialect::new().backslash(Backslash::Keep); // as InfluxDB 2 reads names
/// let summary = parse_with(br"disk,path=\\server free=1", dialect, &mut paths);
/// assert_eq!((summary.points, paths.0), (1, vec![r"\\server".to_owned()]));
/// ```
pub fn parse_with<'a, S: Sink<'a>>(input: &'a [u8], dialect: Dialect, sink: &mut S) -> Summary {
    parse_from(Window::new(input, dialect), 1, sink)
}

/// The same for an input whose first line has the number `line`.
#[inline]
pub(crate) fn parse_from<'a, S: Sink<'a>>(mut window: Window<'a>, line: u64, sink: &mut S) -> Summary {
    let mut walker = Walker::at(&mut window, Position { at: 0, line });
    let mut deliver = Deliver(sink);
    let mut summary = Summary::default();
    while let Some(record) = walker.record(&mut deliver) {
        match record {
            Ok(_) => summary.points += 1,
            Err(_) => summary.errors += 1,
        }
    }
    summary.lines = walker.lines();
    summary
}

/// Hands to a sink, as texts, what the walk finds.
pub(crate) struct Deliver<'s, S>(pub(crate) &'s mut S);

impl<'a, S: Sink<'a>> Visitor<'a> for Deliver<'_, S> {
    #[inline(always)]
    fn series(&mut self, line: u64, key: &'a [u8]) -> Series {
        self.0.series(line, key)
    }

    #[inline(always)]
    fn measurement(&mut self, input: &'a [u8], name: Span) {
        self.0.measurement(name.text(input));
    }

    #[inline(always)]
    fn tag(&mut self, input: &'a [u8], key: Span, value: Span) {
        self.0.tag(key.text(input), value.text(input));
    }

    #[inline(always)]
    fn field(&mut self, key: Span, value: RawValue<'a>) -> Result<(), ErrorKind> {
        self.0.raw_field(key.text(value.input()), value)
    }

    #[inline(always)]
    fn point(&mut self, timestamp: Option<i64>) {
        self.0.point(timestamp);
    }

    #[inline(always)]
    fn error(&mut self, error: Error) {
        self.0.error(error);
    }
}

/// How much [`parse`] found.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Records that were good.
    pub points: u64,
    /// Records that were bad.
    pub errors: u64,
    /// Physical lines, with blank lines, comments and those inside strings.
    pub lines: u64,
}

/// The answer of a [`Sink`] to a series key.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Series {
    /// The very same bytes were delivered and found good before: their parts are not looked at.
    Known,
    /// Deliver measurement and tags.
    Unknown,
}

/// Takes the parts of records as they are parsed.
///
/// For each record: [`series`](Self::series), then [`measurement`](Self::measurement) and
/// [`tag`](Self::tag)s if it was answered with [`Series::Unknown`], then [`field`](Self::field)s,
/// then [`point`](Self::point). [`error`](Self::error) may come instead of any of these but the
/// first and ends the record; what was delivered for it must be taken back.
///
/// ```
/// use std::collections::HashSet;
///
/// use arc_lp::{Error, FieldValue, Series, Sink, Text};
///
/// /// Adds up all floats of the points that are good, and splits each series once.
/// #[derive(Default)]
/// struct Sum<'a> {
///     known: HashSet<&'a [u8]>,
///     series_key: &'a [u8],
///     done: f64,
///     open: f64,
/// }
///
/// impl<'a> Sink<'a> for Sum<'a> {
///     fn series(&mut self, _line: u64, series_key: &'a [u8]) -> Series {
///         self.series_key = series_key;
///         if self.known.contains(series_key) { Series::Known } else { Series::Unknown }
///     }
///     fn measurement(&mut self, _name: Text<'a>) {}
///     fn tag(&mut self, _key: Text<'a>, _value: Text<'a>) {}
///     fn field(&mut self, _key: Text<'a>, value: FieldValue<'a>) {
///         // The first field says that the key was good.
///         self.known.insert(self.series_key);
///         if let FieldValue::Float(value) = value {
///             self.open += value;
///         }
///     }
///     fn point(&mut self, _timestamp: Option<i64>) {
///         self.done += std::mem::take(&mut self.open);
///     }
///     fn error(&mut self, _error: Error) {
///         self.open = 0.0;
///     }
/// }
///
/// let mut sum = Sum::default();
/// let summary = arc_lp::parse(b"cpu,host=a usage=1.5\ncpu,host=a usage=2,oops\ncpu,host=a usage=4", &mut sum);
/// assert_eq!((summary.points, summary.errors, sum.done), (2, 1, 5.5));
/// ```
pub trait Sink<'a> {
    /// A record begins on the physical line `line`, counted from 1.
    ///
    /// `series_key` is what stands between the start of the record and the first space that is not
    /// escaped, or the end of the record: measurement and tags as sent.
    ///
    /// [`Series::Known`] skips the parts and their checks. That is sound for a key whose bytes were
    /// delivered before and whose record then reached [`field`](Self::field): whether a key is good
    /// depends on its bytes alone.
    fn series(&mut self, line: u64, series_key: &'a [u8]) -> Series;

    /// The measurement of a series that was not known.
    fn measurement(&mut self, name: Text<'a>);

    /// A tag of a series that was not known; in input order, repeated keys are all delivered.
    fn tag(&mut self, key: Text<'a>, value: Text<'a>);

    /// A field; in input order, repeated keys are all delivered.
    fn field(&mut self, key: Text<'a>, value: FieldValue<'a>);

    /// A field before its value is read. Reads it and calls [`field`](Self::field), unless a sink
    /// does better: reading numbers is most of the work, and a sink that wants some fields only, or
    /// knows the type it needs, can leave the rest unread.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with the value; the record is then bad. A sink that does not
    /// [parse](RawValue::parse) a value takes it unchecked.
    #[inline(always)]
    fn raw_field(&mut self, key: Text<'a>, value: RawValue<'a>) -> Result<(), ErrorKind> {
        self.field(key, value.parse()?);
        Ok(())
    }

    /// The record is complete and good. The timestamp is as written: its unit is the caller's.
    fn point(&mut self, timestamp: Option<i64>);

    /// The record that began last is bad; everything delivered for it must be taken back.
    fn error(&mut self, error: Error);
}
