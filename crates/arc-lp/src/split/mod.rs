//! The pull face with a buffer of the caller's: each point's tags and fields are found once, kept
//! as [`Token`]s, and may then be counted, indexed and gone over as often as one likes.
//!
//! The same walk as the push face, with a sink that writes down what it is told. Never allocates
//! but where the buffer is a `Vec`, and that only until it has room for the longest record.

mod token;

use core::fmt;
use core::hint::cold_path;
use core::iter::FusedIterator;
use core::ops::Range;
use core::slice;

use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind};
use crate::push::Series;
use crate::record::{Body, Position, Visitor, Walker};
use crate::text::{Escapes, Span, Text};
use crate::value::{FieldValue, RawValue};
use crate::window::Window;

use token::Kind;
pub use token::{Scratch, Token};

/// Goes over the points of `input` with a `scratch` for the parts of one point; goes on after an
/// error.
///
/// Costs a fifth of the speed of [`parse`](crate::parse()).
///
/// ```
/// # fn main() -> Result<(), arc_lp::Error> {
/// let mut scratch = [arc_lp::Token::default(); 64];
/// let mut points = arc_lp::split_points(b"pump,id=7 rpm=1450i,load=0.75 17", &mut scratch);
/// while let Some(point) = points.next_point() {
///     let point = point?;
///     assert_eq!((point.tags().len(), point.fields().len()), (1, 2));
///     assert_eq!(point.fields().next_back().map(|(key, _)| key.raw()), Some(&b"load"[..]));
/// }
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn split_points<'s, 'a, S: Scratch + ?Sized>(input: &'a [u8], scratch: &'s mut S) -> SplitPoints<'s, 'a, S> {
    split_points_with(input, scratch, Dialect::new())
}

/// As [`split_points`], in a dialect.
///
/// ```
/// use arc_lp::{Backslash, Dialect, Token};
///
/// let dialect = Dialect::new().backslash(Backslash::Keep);
/// let mut scratch = [Token::default(); 16];
/// let mut points = arc_lp::split_points_with(br"disk,path=\\server free=1", &mut scratch, dialect);
/// while let Some(point) = points.next_point() {
///     let path = point?.tags().next().map(|(_, value)| value.to_string());
///     assert_eq!(path.as_deref(), Some(r"\\server"));
/// }
/// # Ok::<(), arc_lp::Error>(())
/// ```
#[must_use]
pub fn split_points_with<'s, 'a, S: Scratch + ?Sized>(
    input: &'a [u8],
    scratch: &'s mut S,
    dialect: Dialect,
) -> SplitPoints<'s, 'a, S> {
    SplitPoints { window: Window::new(input, dialect), position: Position { at: 0, line: 1 }, scratch }
}

/// The points of an input, one at a time; see [`split_points`].
///
/// No `Iterator`: each point lies in the scratch until the next one is asked for.
pub struct SplitPoints<'s, 'a, S: ?Sized> {
    window: Window<'a>,
    position: Position,
    scratch: &'s mut S,
}

impl<'a, S: Scratch + ?Sized> SplitPoints<'_, 'a, S> {
    /// Returns the next point, or what is wrong with it; `None` at the end of the input.
    ///
    /// ```
    /// use arc_lp::{ErrorKind, Token};
    ///
    /// let mut scratch = [Token::default(); 2];
    /// let mut points = arc_lp::split_points(b"pump,id=7 rpm=1450i\npump,id=7 rpm=1450i,load=0.75", &mut scratch);
    /// assert!(matches!(points.next_point(), Some(Ok(_))));
    /// assert!(matches!(points.next_point(), Some(Err(error)) if error.kind() == ErrorKind::TooManyTokens));
    /// assert!(points.next_point().is_none());
    /// ```
    ///
    /// # Errors
    ///
    /// What is wrong with the record. [`ErrorKind::TooManyTokens`] where nothing is but that it has
    /// more tags and fields than the scratch has room for.
    #[inline]
    pub fn next_point(&mut self) -> Option<Result<SplitPoint<'_, 'a>, Error>> {
        let mut parts =
            Parts { scratch: &mut *self.scratch, measurement: Span::default(), tags: 0, count: 0, left_out: None };
        let mut walker = Walker::at(&mut self.window, self.position);
        let record = walker.record(&mut parts);
        self.position = walker.position();
        let Parts { measurement, tags, count, left_out, .. } = parts;
        let body = match record? {
            Ok(body) => body,
            Err(error) => return Some(Err(error)),
        };
        if let Some(offset) = left_out {
            return Some(Err(Error::new(ErrorKind::TooManyTokens, offset, body.line)));
        }
        let tokens = self.scratch.tokens().get(..count).unwrap_or_default();
        let (tags, fields) = tokens.split_at_checked(tags).unwrap_or_default();
        Some(Ok(SplitPoint { input: self.window.input(), body, measurement, tags, fields }))
    }
}

impl<S: ?Sized> fmt::Debug for SplitPoints<'_, '_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SplitPoints").finish_non_exhaustive()
    }
}

/// Writes down the parts of one record.
struct Parts<'s, S: ?Sized> {
    scratch: &'s mut S,
    measurement: Span,
    tags: usize,
    count: usize,
    /// Where the first part stands for which there was no room.
    left_out: Option<usize>,
}

impl<S: Scratch + ?Sized> Parts<'_, S> {
    #[inline(always)]
    fn put(&mut self, key: Span, kind: Kind, bits: u64, text_escapes: Option<Escapes>) {
        if self.scratch.put(self.count, Token::new(key, kind, bits, text_escapes)) {
            self.count += 1;
        } else {
            cold_path();
            self.left_out.get_or_insert(key.start);
        }
    }
}

impl<'a, S: Scratch + ?Sized> Visitor<'a> for Parts<'_, S> {
    #[inline(always)]
    fn series(&mut self, _: u64, _: &'a [u8]) -> Series {
        Series::Unknown
    }

    #[inline(always)]
    fn measurement(&mut self, _: &'a [u8], name: Span) {
        self.measurement = name;
    }

    #[inline(always)]
    fn tag(&mut self, _: &'a [u8], key: Span, value: Span) {
        self.put(key, Kind::Text, value.end as u64, value.escapes);
        self.tags = self.count;
    }

    #[inline(always)]
    fn field(&mut self, key: Span, value: RawValue<'a>) -> Result<(), ErrorKind> {
        let Span { end, escapes, .. } = value.span();
        match value.parse()? {
            FieldValue::Float(value) => self.put(key, Kind::Float, value.to_bits(), None),
            FieldValue::Integer(value) => self.put(key, Kind::Integer, value.cast_unsigned(), None),
            FieldValue::Unsigned(value) => self.put(key, Kind::Unsigned, value, None),
            FieldValue::Boolean(value) => self.put(key, Kind::Boolean, u64::from(value), None),
            FieldValue::String(_) => self.put(key, Kind::Text, end as u64, escapes),
        }
        Ok(())
    }

    #[inline(always)]
    fn point(&mut self, _: Option<i64>) {}

    #[inline(always)]
    fn error(&mut self, _: Error) {}
}

/// A good record whose parts are known: what [`SplitPoints`] gives.
#[derive(Copy, Clone)]
pub struct SplitPoint<'s, 'a> {
    input: &'a [u8],
    body: Body,
    measurement: Span,
    tags: &'s [Token],
    fields: &'s [Token],
}

impl<'s, 'a> SplitPoint<'s, 'a> {
    /// Returns the measurement.
    #[must_use]
    pub fn measurement(&self) -> Text<'a> {
        self.measurement.text(self.input)
    }

    /// Returns the bytes from the start of the record to the first unescaped space; see
    /// [`Point::series_key`](crate::Point::series_key).
    #[must_use]
    pub fn series_key(&self) -> &'a [u8] {
        self.input.get(self.body.start..self.body.key_end).unwrap_or_default()
    }

    /// Returns the tags in input order; repeated keys are all yielded.
    ///
    /// ```
    /// let mut scratch = [arc_lp::Token::default(); 16];
    /// let mut points = arc_lp::split_points(b"pump,id=7,site=north rpm=1450i", &mut scratch);
    /// while let Some(point) = points.next_point() {
    ///     assert_eq!(point?.tags().len(), 2);
    /// }
    /// # Ok::<(), arc_lp::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn tags(&self) -> SplitTags<'s, 'a> {
        SplitTags { input: self.input, tokens: self.tags.iter() }
    }

    /// Returns the fields in input order; repeated keys are all yielded. There is at least one.
    ///
    /// ```
    /// let mut scratch = [arc_lp::Token::default(); 16];
    /// let mut points = arc_lp::split_points(b"pump,id=7 rpm=1450i,load=0.75", &mut scratch);
    /// while let Some(point) = points.next_point() {
    ///     let keys = point?.fields().map(|(key, _)| key.to_string());
    ///     assert!(keys.eq(["rpm", "load"]));
    /// }
    /// # Ok::<(), arc_lp::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn fields(&self) -> SplitFields<'s, 'a> {
        SplitFields { input: self.input, tokens: self.fields.iter() }
    }

    /// Returns the timestamp as written: its unit is the caller's to know.
    #[must_use]
    pub const fn timestamp(&self) -> Option<i64> {
        self.body.timestamp
    }

    /// Returns the physical line, counted from 1, on which the record starts.
    #[must_use]
    pub const fn line(&self) -> u64 {
        self.body.line
    }

    /// Returns where in the input the record is, without the blanks around it and its line end.
    #[must_use]
    pub const fn byte_range(&self) -> Range<usize> {
        self.body.start..self.body.end
    }
}

impl fmt::Debug for SplitPoint<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SplitPoint")
            .field("measurement", &self.measurement())
            .field("tags", &self.tags())
            .field("fields", &self.fields())
            .field("timestamp", &self.body.timestamp)
            .field("line", &self.body.line)
            .finish_non_exhaustive()
    }
}

/// Both iterators go over tokens and differ in what a token is taken for.
macro_rules! token_iterator {
    ($(#[$doc:meta])* $name:ident, $item:ident, $value:ty) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name<'s, 'a> {
            input: &'a [u8],
            tokens: slice::Iter<'s, Token>,
        }

        impl<'a> Iterator for $name<'_, 'a> {
            type Item = (Text<'a>, $value);

            #[inline]
            fn next(&mut self) -> Option<Self::Item> {
                Some(self.tokens.next()?.$item(self.input))
            }

            #[inline]
            fn size_hint(&self) -> (usize, Option<usize>) {
                self.tokens.size_hint()
            }

            #[inline]
            fn nth(&mut self, n: usize) -> Option<Self::Item> {
                Some(self.tokens.nth(n)?.$item(self.input))
            }
        }

        impl DoubleEndedIterator for $name<'_, '_> {
            #[inline]
            fn next_back(&mut self) -> Option<Self::Item> {
                Some(self.tokens.next_back()?.$item(self.input))
            }
        }

        impl ExactSizeIterator for $name<'_, '_> {}

        impl FusedIterator for $name<'_, '_> {}

        impl fmt::Debug for $name<'_, '_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_map().entries(self.clone()).finish()
            }
        }
    };
}

token_iterator! {
    /// Iterator of the tags of a [`SplitPoint`]: key and value.
    SplitTags, tag, Text<'a>
}

token_iterator! {
    /// Iterator of the fields of a [`SplitPoint`]: key and value.
    SplitFields, field, FieldValue<'a>
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec::Vec;

    const INPUT: &[u8] = b"m,t=1,u=\\, a=1,b=2i,c=\"\\\"\" 5\nm\nm,t=1 a=1\nm a=t";

    fn keys(tags: usize, fields: usize) -> Result<(usize, usize), ErrorKind> {
        Ok((tags, fields))
    }

    fn counts<S: Scratch + ?Sized>(scratch: &mut S) -> Vec<Result<(usize, usize), ErrorKind>> {
        let mut points = split_points(INPUT, scratch);
        let mut counts = Vec::new();
        while let Some(point) = points.next_point() {
            counts.push(point.map(|point| (point.tags().len(), point.fields().len())).map_err(|error| error.kind()));
        }
        counts
    }

    #[test]
    fn records_with_more_parts_than_room_are_refused_and_no_others() {
        let missing = Err(ErrorKind::FieldMissing);
        let many = Err(ErrorKind::TooManyTokens);
        assert_eq!(counts(&mut [Token::default(); 5]), [keys(2, 3), missing, keys(1, 1), keys(0, 1)]);
        assert_eq!(counts(&mut [Token::default(); 4]), [many, missing, keys(1, 1), keys(0, 1)]);
        assert_eq!(counts(&mut [Token::default(); 1][..]), [many, missing, many, keys(0, 1)]);
        assert_eq!(counts::<[Token]>(&mut []), [many, missing, many, many]);
    }

    #[test]
    fn the_first_part_without_room_is_where_the_error_is() {
        let mut scratch = [Token::default(); 3];
        let error =
            split_points(INPUT, &mut scratch).next_point().map(|point| point.map_err(|error| error.offset()).err());
        assert_eq!(error, Some(Some(15)));
    }

    #[cfg(feature = "alloc")]
    #[test]
    fn a_vec_grows_to_the_longest_record_and_stays_so() {
        let mut scratch = Vec::new();
        counts(&mut scratch);
        assert_eq!(scratch.len(), 5);
        counts(&mut scratch);
        assert_eq!(scratch.len(), 5);
    }

    #[test]
    fn parts_can_be_taken_from_both_ends_and_by_number() {
        let mut scratch = [Token::default(); 8];
        let mut points = split_points(INPUT, &mut scratch);
        let point = points.next_point().unwrap().unwrap();
        assert_eq!(point.measurement(), "m");
        assert_eq!(point.tags().next_back().unwrap().1, ",");
        assert_eq!(point.fields().nth(1).unwrap().1, FieldValue::Integer(2));
        assert_eq!(point.fields().next_back().unwrap().1, FieldValue::from("\""));
        assert_eq!((point.series_key(), point.timestamp()), (&b"m,t=1,u=\\,"[..], Some(5)));
        assert_eq!((point.line(), point.byte_range()), (1, 0..28));
    }
}
