//! The pull face: an iterator of points whose tags and fields are iterators again.
//!
//! Everything borrows the input and nothing else. A point was checked to its last byte when it is
//! yielded, so its parts cannot fail; they are found again when asked for. What is costly to find,
//! the first numbers, a point keeps.

use core::fmt;
use core::iter::FusedIterator;
use core::ops::Range;

use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind};
use crate::marks::Marks;
use crate::push::Series;
use crate::record::{Body, Position, Visitor, Walker};
use crate::text::{Escapes, Span, Text};
use crate::value::{FieldValue, RawValue, ValueKind};
use crate::window::Window;

/// Iterates over the points of `input`; goes on after an error.
///
/// Each record is gone over twice, which costs about half of the speed of
/// [`parse`](crate::parse()); [`split_points`](crate::split_points()) spares most of that.
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
    points_with(input, Dialect::new())
}

/// As [`points`], in a dialect.
///
/// ```
/// use arc_lp::{Dialect, Utf8};
///
/// let input = b"pump,site=caf\xe9 rpm=1450i"; // Latin-1
/// assert!(arc_lp::points(input).all(|point| point.is_err()));
/// for point in arc_lp::points_with(input, Dialect::new().utf8(Utf8::Lossy)) {
///     assert_eq!(point?.fields().count(), 1);
/// }
/// # Ok::<(), arc_lp::Error>(())
/// ```
#[must_use]
pub fn points_with(input: &[u8], dialect: Dialect) -> Points<'_> {
    Points { window: Window::new(input, dialect), position: Position { at: 0, line: 1 } }
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
        let mut check = Check { measurement: Span::default(), bare: 0, bits: [0; CACHED] };
        let mut walker = Walker::at(&mut self.window, self.position);
        let record = walker.record(&mut check);
        self.position = walker.position();
        let Check { measurement, bits, .. } = check;
        let (input, names) = (self.window.input(), self.window.dialect().escapes(Escapes::Name));
        Some(record?.map(|body| Point { input, names, body, measurement, bits }))
    }
}

impl FusedIterator for Points<'_> {}

impl fmt::Debug for Points<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Points").finish_non_exhaustive()
    }
}

/// How many values of a record are kept by the check, so that they need not be read twice. Sixteen
/// gain nothing more on records of ten: points get larger, and they are copied.
const CACHED: usize = 8;

/// Reads everything, keeps the numbers.
struct Check {
    measurement: Span,
    /// How many values there were that are no strings.
    bare: usize,
    bits: [u64; CACHED],
}

impl<'a> Visitor<'a> for Check {
    #[inline(always)]
    fn series(&mut self, _: u64, _: &'a [u8]) -> Series {
        Series::Unknown
    }

    #[inline(always)]
    fn measurement(&mut self, _: &'a [u8], name: Span) {
        self.measurement = name;
    }

    #[inline(always)]
    fn tag(&mut self, _: &'a [u8], _: Span, _: Span) {}

    #[inline(always)]
    fn field(&mut self, _: Span, value: RawValue<'a>) -> Result<(), ErrorKind> {
        let bits = match value.parse()? {
            FieldValue::Float(value) => value.to_bits(),
            FieldValue::Integer(value) => value.cast_unsigned(),
            FieldValue::Unsigned(value) => value,
            FieldValue::Boolean(value) => u64::from(value),
            FieldValue::String(_) => return Ok(()),
        };
        if let Some(room) = self.bits.get_mut(self.bare) {
            *room = bits;
            self.bare += 1;
        }
        Ok(())
    }

    #[inline(always)]
    fn point(&mut self, _: Option<i64>) {}

    #[inline(always)]
    fn error(&mut self, _: Error) {}
}

/// A good record.
#[derive(Copy, Clone)]
pub struct Point<'a> {
    input: &'a [u8],
    names: Escapes,
    body: Body,
    measurement: Span,
    /// Those of the first values that are no strings.
    bits: [u64; CACHED],
}

impl<'a> Point<'a> {
    /// Returns the measurement.
    ///
    /// ```
    /// for point in arc_lp::points(b"pump\\ house rpm=1450i") {
    ///     assert_eq!(point?.measurement().to_string(), "pump house");
    /// }
    /// # Ok::<(), arc_lp::Error>(())
    /// ```
    #[must_use]
    pub fn measurement(&self) -> Text<'a> {
        self.measurement.text(self.input)
    }

    /// Returns the bytes from the start of the record to the first unescaped space: measurement and
    /// tags as sent. Equal bytes are the same series; the same series may be spelled in many ways.
    ///
    /// ```
    /// for point in arc_lp::points(b"pump,id=7 rpm=1450i 17\npump,id=7 rpm=1451i 18") {
    ///     assert_eq!(point?.series_key(), b"pump,id=7");
    /// }
    /// # Ok::<(), arc_lp::Error>(())
    /// ```
    #[must_use]
    pub fn series_key(&self) -> &'a [u8] {
        Span { start: self.body.start, end: self.body.key_end, escapes: None }.text(self.input).raw()
    }

    /// Returns the tags in input order; repeated keys are all yielded.
    ///
    /// ```
    /// for point in arc_lp::points(b"pump,id=7,site=north rpm=1450i") {
    ///     let keys = point?.tags().map(|(key, _)| key.to_string());
    ///     assert!(keys.eq(["id", "site"]));
    /// }
    /// # Ok::<(), arc_lp::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn tags(&self) -> Tags<'a> {
        let at = self.measurement.end;
        Tags { marks: Marks::new(self.input, at + 1, self.names), at, end: self.body.key_end }
    }

    /// Returns the fields in input order; repeated keys are all yielded. There is at least one.
    ///
    /// ```
    /// use arc_lp::FieldValue;
    ///
    /// for point in arc_lp::points(b"pump rpm=1450i,load=0.75") {
    ///     let load = point?.fields().find(|(key, _)| key.as_str() == Some("load"));
    ///     assert!(matches!(load, Some((_, FieldValue::Float(0.75)))));
    /// }
    /// # Ok::<(), arc_lp::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn fields(&self) -> Fields<'a> {
        let Body { fields_start: at, fields_end: end, .. } = self.body;
        Fields { marks: Marks::new(self.input, at, self.names), at, end, bare: 0, bits: self.bits }
    }

    /// Returns the timestamp as written: its unit is the caller's to know.
    ///
    /// ```
    /// let times = arc_lp::points(b"pump rpm=1450i 1700000000\npump rpm=1451i")
    ///     .map(|point| Ok(point?.timestamp()))
    ///     .collect::<Result<Vec<_>, arc_lp::Error>>()?;
    /// assert_eq!(times, [Some(1_700_000_000), None]);
    /// # Ok::<(), arc_lp::Error>(())
    /// ```
    #[must_use]
    pub const fn timestamp(&self) -> Option<i64> {
        self.body.timestamp
    }

    /// Returns the physical line, counted from 1, on which the record starts.
    ///
    /// ```
    /// for point in arc_lp::points(b"# from the north hall\n\npump rpm=1450i") {
    ///     assert_eq!(point?.line(), 3);
    /// }
    /// # Ok::<(), arc_lp::Error>(())
    /// ```
    #[must_use]
    pub const fn line(&self) -> u64 {
        self.body.line
    }

    /// Returns where in the input the record is, without the blanks around it and its line end.
    ///
    /// ```
    /// let input = b"pump rpm=1450i 17\n  fan on=true\n";
    /// for point in arc_lp::points(input) {
    ///     let point = point?;
    ///     // The line as it was sent.
    ///     println!("{}", String::from_utf8_lossy(&input[point.byte_range()]));
    /// }
    /// # Ok::<(), arc_lp::Error>(())
    /// ```
    #[must_use]
    pub const fn byte_range(&self) -> Range<usize> {
        self.body.start..self.body.end
    }
}

impl fmt::Debug for Point<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Point")
            .field("measurement", &self.measurement())
            .field("tags", &self.tags())
            .field("fields", &self.fields())
            .field("timestamp", &self.body.timestamp)
            .field("line", &self.body.line)
            .finish_non_exhaustive()
    }
}

/// Iterator of the tags of a [`Point`]: key and value.
#[derive(Clone)]
pub struct Tags<'a> {
    marks: Marks<'a>,
    /// The comma in front of the next tag, or `end`.
    at: usize,
    end: usize,
}

impl<'a> Iterator for Tags<'a> {
    type Item = (Text<'a>, Text<'a>);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let key = self.marks.name(self.at + 1, b'=');
        let value = self.marks.name(key.end + 1, b',');
        self.at = value.end;
        let input = self.marks.input();
        Some((key.text(input), value.text(input)))
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
    marks: Marks<'a>,
    /// Where the next field begins; after `end` after the last one.
    at: usize,
    end: usize,
    /// How many values there were that are no strings.
    bare: usize,
    bits: [u64; CACHED],
}

impl<'a> Fields<'a> {
    /// Takes the value from `start` on, with the comma after it.
    #[inline(always)]
    fn value(&mut self, start: usize) -> Option<FieldValue<'a>> {
        let input = self.marks.input();
        if self.marks.byte(start) == b'"' {
            let string = self.marks.string(start + 1);
            self.at = self.marks.next().saturating_add(1);
            return Some(FieldValue::String(string.text(input)));
        }
        // After the last value there may be a carriage return, which is not structural.
        let end = self.marks.next().min(self.end);
        self.at = end + 1;
        let value = RawValue::bare(input, start, end);
        let Some(&bits) = self.bits.get(self.bare) else {
            return parse_again(value);
        };
        self.bare += 1;
        Some(match value.kind() {
            ValueKind::Float => FieldValue::Float(f64::from_bits(bits)),
            ValueKind::Integer => FieldValue::Integer(bits.cast_signed()),
            ValueKind::Unsigned => FieldValue::Unsigned(bits),
            ValueKind::Boolean | ValueKind::String => FieldValue::Boolean(bits != 0),
        })
    }
}

/// Reads a value for which there was no room.
#[cold]
#[inline(never)]
fn parse_again(value: RawValue<'_>) -> Option<FieldValue<'_>> {
    value.parse().ok()
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Text<'a>, FieldValue<'a>);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let key = self.marks.name(self.at, b'=');
        let value = self.value(key.end + 1)?;
        Some((key.text(self.marks.input()), value))
    }
}

impl FusedIterator for Fields<'_> {}

impl fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.clone()).finish()
    }
}
