//! The grammar: one record after the other, as straight-line code over the structural bytes.
//!
//! Owns the rules of a record (see the crate's documentation for each with its source), the line
//! count and the recovery after an error. Never copies, never looks back further than the record.
//!
//! The order of the steps is the order of the bytes, so that the first thing wrong in a record is
//! the one reported. Each step leaves the cursor after the byte that ended it.
//!
//! Everything but what follows an error is inlined into the face that drives it: the state of the
//! walk then stays in registers.

mod fields;
mod series;

use core::hint::cold_path;

use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind};
use crate::push::Series;
use crate::text::Span;
use crate::value::RawValue;
use crate::window::Window;

/// Takes the parts of records as they are walked over: [`Sink`](crate::Sink) by positions, with the
/// same order of calls.
pub(crate) trait Visitor<'a> {
    fn series(&mut self, line: u64, key: &'a [u8]) -> Series;
    fn measurement(&mut self, input: &'a [u8], name: Span);
    fn tag(&mut self, input: &'a [u8], key: Span, value: Span);
    fn field(&mut self, key: Span, value: RawValue<'a>) -> Result<(), ErrorKind>;
    fn point(&mut self, timestamp: Option<i64>);
    fn error(&mut self, error: Error);
}

/// Where a good record and its parts are.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Body {
    pub(crate) start: usize,
    pub(crate) key_end: usize,
    pub(crate) fields_start: usize,
    pub(crate) fields_end: usize,
    /// After the last byte that is no space and no line end.
    pub(crate) end: usize,
    pub(crate) timestamp: Option<i64>,
    /// The physical line of `start`.
    pub(crate) line: u64,
}

/// What is wrong, and from where to look for the line feed after which parsing goes on.
#[derive(Copy, Clone, Debug)]
struct Fault {
    kind: ErrorKind,
    offset: usize,
    resume: usize,
}

/// Says that the record is bad; the walker's `fault` says why.
///
/// Empty on purpose: a result that holds either a value or a reason is put together in memory and
/// taken apart again, which cost half of the time of the whole walk.
#[derive(Copy, Clone, Debug)]
struct Bad;

/// A position between two records: all that must be kept to go on from there later.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Position {
    /// Where the next record begins, or the blanks in front of it.
    pub(crate) at: usize,
    /// The physical line of `at`.
    pub(crate) line: u64,
}

/// Goes from record to record.
pub(crate) struct Walker<'w, 'a> {
    cursor: Cursor<'w, 'a>,
    /// Where the next record begins, or the blanks in front of it.
    at: usize,
    line: u64,
    /// What is wrong with the record that was last found bad.
    fault: Fault,
}

impl<'w, 'a> Walker<'w, 'a> {
    /// A walker where another one was.
    #[inline(always)]
    pub(crate) const fn at(window: &'w mut Window<'a>, position: Position) -> Self {
        let Position { at, line } = position;
        let fault = Fault { kind: ErrorKind::FieldMissing, offset: 0, resume: 0 };
        Self { cursor: Cursor::new(window), at, line, fault }
    }

    #[inline(always)]
    pub(crate) const fn position(&self) -> Position {
        Position { at: self.at, line: self.line }
    }

    /// The physical lines passed so far; a last one without line feed counts at the end of input.
    pub(crate) fn lines(&self) -> u64 {
        let input = self.cursor.input();
        let is_open = input.last().is_some_and(|&byte| byte != b'\n');
        self.line - 1 + u64::from(is_open && self.at >= input.len())
    }

    /// Parses the next record, good or bad, and delivers it; `None` at the end of the input.
    #[inline(always)]
    pub(crate) fn record<V: Visitor<'a>>(&mut self, visitor: &mut V) -> Option<Result<Body, Error>> {
        let start = self.skip_blank()?;
        let line = self.line;
        if let Ok(body) = self.body(start, visitor) {
            visitor.point(body.timestamp);
            return Some(Ok(body));
        }
        let fault = self.fault;
        self.line = line + line_feeds(self.cursor.slice(start, fault.resume));
        self.skip_line(fault.resume);
        let error = Error::new(fault.kind, fault.offset, line);
        visitor.error(error);
        Some(Err(error))
    }

    /// Goes over blanks, blank lines and comments to the first byte of a record.
    #[inline(always)]
    fn skip_blank(&mut self) -> Option<usize> {
        loop {
            match self.cursor.byte(self.at) {
                b' ' | b'\t' => self.at += 1,
                b'\r' if self.is_line_end(self.at) => self.at += 1,
                b'\n' if self.at >= self.cursor.input().len() => return None,
                b'\n' => self.end_line(self.at),
                b'#' => self.skip_line(self.at),
                _ => return Some(self.at),
            }
        }
    }

    /// Goes after the first line feed from `at` on, whatever stands in front of it.
    #[inline(always)]
    fn skip_line(&mut self, at: usize) {
        self.cursor.seek(at);
        let mut next = self.cursor.next();
        while self.cursor.byte(next) != b'\n' {
            next = self.cursor.next();
        }
        self.end_line(next);
    }

    /// Goes after the line feed at `at`, or stays there where it is the end of the input.
    #[inline(always)]
    fn end_line(&mut self, at: usize) {
        let is_line_feed = at < self.cursor.input().len();
        self.at = at + usize::from(is_line_feed);
        self.line += u64::from(is_line_feed);
    }

    /// `measurement[,tag=value]* SP+ field=value[,field=value]* [SP+ timestamp] SP*`
    #[inline(always)]
    fn body<V: Visitor<'a>>(&mut self, start: usize, visitor: &mut V) -> Result<Body, Bad> {
        let line = self.line;
        let key_end = self.series(start, visitor)?;
        let mut fields_start = key_end + 1;
        if !self.is_plain(fields_start) {
            cold_path();
            fields_start = self.skip_spaces(fields_start);
            if self.is_line_end(fields_start) {
                return Err(self.bad(ErrorKind::FieldMissing, fields_start));
            }
        }
        let fields = self.fields(fields_start, visitor)?;
        let (timestamp, end) = self.timestamp(fields)?;
        Ok(Body { start, key_end, fields_start, fields_end: fields.end, end, timestamp, line })
    }

    /// Notes what is wrong at `offset`.
    #[inline(always)]
    fn bad(&mut self, kind: ErrorKind, offset: usize) -> Bad {
        self.bad_until(kind, offset, offset)
    }

    /// Notes what is wrong at `offset`, and that no record begins before `resume`.
    #[inline(always)]
    fn bad_until(&mut self, kind: ErrorKind, offset: usize, resume: usize) -> Bad {
        self.fault = Fault { kind, offset, resume };
        Bad
    }

    /// Goes over spaces from `at` on and returns the first byte that is none.
    #[inline(always)]
    fn skip_spaces(&mut self, mut at: usize) -> usize {
        while self.cursor.byte(at) == b' ' {
            self.cursor.next();
            at += 1;
        }
        at
    }

    /// Whether a part begins at `at`, as nearly always: there is no space and no line end.
    #[inline(always)]
    fn is_plain(&self, at: usize) -> bool {
        self.cursor.byte(at) > b' '
    }

    /// Whether the record ends at `at`: at a line feed, the end, or a carriage return before one.
    #[inline(always)]
    fn is_line_end(&self, at: usize) -> bool {
        match self.cursor.byte(at) {
            b'\n' => true,
            b'\r' => self.cursor.byte(at + 1) == b'\n',
            _ => false,
        }
    }

    /// The end of what stands from `start` on and is ended by the line feed at `next`: a carriage
    /// return in front of it belongs to the line end.
    #[inline(always)]
    fn trim(&self, start: usize, next: usize) -> usize {
        next - usize::from(next > start && self.cursor.byte(next - 1) == b'\r')
    }
}

#[cold]
fn line_feeds(bytes: &[u8]) -> u64 {
    bytes.iter().map(|&byte| u64::from(byte == b'\n')).sum()
}

/// How many bytes from the front are UTF-8.
#[cold]
fn valid_utf8_len(bytes: &[u8]) -> usize {
    core::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::dialect::Dialect;
    use std::string::String;

    /// Reads all values, knows no series.
    struct Check;

    impl<'a> Visitor<'a> for Check {
        fn series(&mut self, _: u64, _: &'a [u8]) -> Series {
            Series::Unknown
        }
        fn measurement(&mut self, _: &'a [u8], _: Span) {}
        fn tag(&mut self, _: &'a [u8], _: Span, _: Span) {}
        fn field(&mut self, _: Span, value: RawValue<'a>) -> Result<(), ErrorKind> {
            value.parse().map(|_| ())
        }
        fn point(&mut self, _: Option<i64>) {}
        fn error(&mut self, _: Error) {}
    }

    /// How many windows of 4 KiB are classified until the end of `input`.
    fn loads(input: &[u8]) -> usize {
        let mut window = Window::new(input, Dialect::new());
        let mut walker = Walker::at(&mut window, Position { at: 0, line: 1 });
        while walker.record(&mut Check).is_some() {}
        window.loads
    }

    #[test]
    fn no_input_is_classified_more_than_a_few_times() {
        let fronts = ["", "m,", "m,t=", "m,t=1 ", "m f=", "m f=1,", "m f=1 ", "m f=\""];
        let pieces = [
            "\\", "\"", ",", "=", " ", "\\\\", "\\,", "m,", "a=", "a=\"\",", "\n", "\r\n", "#\n", "m \n", "m f=1\n",
            "é", "\t",
        ];
        for front in fronts {
            for piece in pieces {
                // Long where all of it is one name, one string or many records.
                let is_long = front.is_empty() || front.ends_with('"');
                let length = if is_long { 1024 * 1024 } else { 64 * 1024 };
                let input = String::from(front) + &piece.repeat(length / piece.len());
                let windows = input.len().div_ceil(4096);
                let loads = loads(input.as_bytes());
                // Ahead for the end of a series key, back for its parts, and on from an error.
                assert!(loads <= 3 * windows + 3, "{front}{piece}… of {length}: {loads} of {windows}");
            }
        }
    }
}
