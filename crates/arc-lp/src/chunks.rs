//! A body that arrives in pieces: complete records now, the unfinished one with the next piece.
//!
//! Owns the line count across chunks. Never copies: keeping the unfinished rest, and how much of
//! it, is the caller's part.

use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind};
use crate::push::{Deliver, Series, Sink, Summary, parse_from};
use crate::record::{Position, Walker};
use crate::text::Text;
use crate::value::{FieldValue, RawValue};
use crate::window::Window;

/// A [`Sink`] that can be told that a record was begun too early.
pub trait ResumableSink<'a>: Sink<'a> {
    /// The record that began last is cut off by the end of the chunk. Everything delivered for it
    /// must be taken back, as for an error; it will come again, whole, from the next chunk.
    fn unfinished(&mut self);

    /// Asked after each record: `true` ends the chunk in front of that record, as if it had been
    /// cut off there. The sink must have taken back what was delivered for it.
    #[inline(always)]
    fn gives_back(&mut self) -> bool {
        false
    }
}

/// Parses a body chunk by chunk.
///
/// ```
/// # use arc_lp::*;
/// # struct Count(usize);
/// # impl<'a> Sink<'a> for Count {
/// #     fn series(&mut self, _: u64, _: &'a [u8]) -> Series { Series::Known }
/// #     fn measurement(&mut self, _: Text<'a>) {}
/// #     fn tag(&mut self, _: Text<'a>, _: Text<'a>) {}
/// #     fn field(&mut self, _: Text<'a>, _: FieldValue<'a>) {}
/// #     fn point(&mut self, _: Option<i64>) { self.0 += 1; }
/// #     fn error(&mut self, _: Error) {}
/// # }
/// # impl<'a> ResumableSink<'a> for Count {
/// #     fn unfinished(&mut self) {}
/// # }
/// # let mut sink = Count(0);
/// let mut chunks = Chunks::new();
/// let mut buffer = Vec::new();
/// for piece in [&b"cpu usage=1"[..], b".5 17\nlog text=\"two\nli", b"nes\" 18"] {
///     buffer.extend_from_slice(piece);
///     let done = chunks.parse(&buffer, &mut sink);
///     buffer.drain(..done);
/// }
/// let summary = chunks.finish(&buffer, &mut sink);
/// assert_eq!((summary.points, summary.lines), (2, 3));
/// ```
#[derive(Clone, Debug)]
#[must_use = "the last record is only parsed by `finish`"]
pub struct Chunks {
    dialect: Dialect,
    summary: Summary,
    offset: usize,
}

impl Chunks {
    /// A body of which nothing was parsed yet.
    pub const fn new() -> Self {
        Self::with_dialect(Dialect::new())
    }

    /// The same, in a dialect.
    ///
    /// ```
    /// use arc_lp::{Chunks, Dialect, Utf8};
    ///
    /// let chunks = Chunks::with_dialect(Dialect::new().utf8(Utf8::Lossy));
    /// assert_eq!((chunks.offset(), chunks.lines()), (0, 0));
    /// ```
    pub const fn with_dialect(dialect: Dialect) -> Self {
        let summary = Summary { points: 0, errors: 0, lines: 0 };
        Self { dialect, summary, offset: 0 }
    }

    /// Returns how many bytes of the body are done: what the offset of an error in the next chunk
    /// counts from. Lines are counted over the whole body already.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Returns how many lines of the body are done.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        self.summary.lines
    }

    /// Takes what `next` has parsed of the bytes after these for done, as if it had been parsed
    /// here.
    pub const fn append(&mut self, next: &Self) {
        self.summary.points += next.summary.points;
        self.summary.errors += next.summary.errors;
        self.summary.lines += next.summary.lines;
        self.offset += next.offset;
    }

    /// Parses the records that are complete in `chunk` and returns how many bytes they are.
    ///
    /// The rest must be the beginning of the next chunk. A record is complete if a line feed ends
    /// it that is not inside a string. Where nothing is complete the answer is 0 and the next chunk
    /// must be longer; callers should let it grow in proportion, since it is parsed from its start
    /// again, and give up at a length that no honest record has: a string that is never closed
    /// makes the whole rest of a body one record.
    pub fn parse<'a, S: ResumableSink<'a>>(&mut self, chunk: &'a [u8], sink: &mut S) -> usize {
        let end = chunk.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let chunk = chunk.get(..end).unwrap_or_default();
        let mut window = Window::new(chunk, self.dialect);
        let start = Position { at: 0, line: self.summary.lines + 1 };
        let mut walker = Walker::at(&mut window, start);
        let mut prefix = Prefix { sink };
        let mut deliver = Deliver(&mut prefix);
        let mut done = start;
        while let Some(record) = walker.record(&mut deliver) {
            if deliver.0.sink.gives_back() {
                return self.advance(done);
            }
            match record {
                Ok(_) => self.summary.points += 1,
                Err(error) if is_cut_off(&error) => return self.advance(done),
                Err(_) => self.summary.errors += 1,
            }
            done = walker.position();
        }
        self.advance(walker.position())
    }

    /// Parses what is left, the last record included, and returns what the whole body held.
    pub fn finish<'a, S: Sink<'a>>(self, rest: &'a [u8], sink: &mut S) -> Summary {
        let last = parse_from(Window::new(rest, self.dialect), self.summary.lines + 1, sink);
        Summary {
            points: self.summary.points + last.points,
            errors: self.summary.errors + last.errors,
            lines: last.lines,
        }
    }

    fn advance(&mut self, done: Position) -> usize {
        self.summary.lines = done.line - 1;
        self.offset += done.at;
        done.at
    }
}

impl Default for Chunks {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether it is the end of the chunk that is wrong: chunks end in a line feed, so only a string
/// can go on after it.
fn is_cut_off(error: &Error) -> bool {
    error.kind() == ErrorKind::StringUnclosed
}

/// Passes everything on, but tells the one error that is none yet from the others.
struct Prefix<'s, S> {
    sink: &'s mut S,
}

impl<'a, S: ResumableSink<'a>> Sink<'a> for Prefix<'_, S> {
    #[inline(always)]
    fn series(&mut self, line: u64, series_key: &'a [u8]) -> Series {
        self.sink.series(line, series_key)
    }

    #[inline(always)]
    fn measurement(&mut self, name: Text<'a>) {
        self.sink.measurement(name);
    }

    #[inline(always)]
    fn tag(&mut self, key: Text<'a>, value: Text<'a>) {
        self.sink.tag(key, value);
    }

    #[inline(always)]
    fn field(&mut self, key: Text<'a>, value: FieldValue<'a>) {
        self.sink.field(key, value);
    }

    #[inline(always)]
    fn raw_field(&mut self, key: Text<'a>, value: RawValue<'a>) -> Result<(), ErrorKind> {
        self.sink.raw_field(key, value)
    }

    #[inline(always)]
    fn point(&mut self, timestamp: Option<i64>) {
        self.sink.point(timestamp);
    }

    #[inline(always)]
    fn error(&mut self, error: Error) {
        if is_cut_off(&error) {
            self.sink.unfinished();
        } else {
            self.sink.error(error);
        }
    }
}
