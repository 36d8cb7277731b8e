//! The grammar: one record after the other, as straight-line code over the structural bytes.
//!
//! Owns the rules of a record (see the crate's documentation for each with its source), the line
//! count and the recovery after an error. Never copies, never looks back further than the record.
//!
//! The order of the steps is the order of the bytes, so that the first thing wrong in a record is
//! the one reported. Each step leaves the cursor behind the byte that ended it.

use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind};
use crate::number;
use crate::push::{Series, Sink};
use crate::text::{Escapes, Text};
use crate::value::RawValue;

/// Where a good record and its parts are.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Body {
    pub(crate) start: usize,
    pub(crate) key_end: usize,
    pub(crate) fields_start: usize,
    pub(crate) fields_end: usize,
    /// Behind the last byte that is no space and no line end.
    pub(crate) end: usize,
    pub(crate) timestamp: Option<i64>,
    /// The physical line of `start`.
    pub(crate) line: u64,
}

/// What is wrong, and from where to look for the line feed behind which parsing goes on.
#[derive(Copy, Clone, Debug)]
struct Fault {
    kind: ErrorKind,
    offset: usize,
    resume: usize,
}

impl Fault {
    const fn at(kind: ErrorKind, offset: usize) -> Self {
        Self {
            kind,
            offset,
            resume: offset,
        }
    }
}

/// Which byte is wrong in a name that holds more than plain characters.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Name {
    Measurement,
    Tag,
    Field,
}

/// A place between two records, and all that is needed to go on from there.
#[derive(Clone)]
pub(crate) struct Walker<'a> {
    cursor: Cursor<'a>,
    /// Where the next record begins, or the blanks in front of it.
    at: usize,
    /// The physical line of `at`, counted from 1.
    line: u64,
}

impl<'a> Walker<'a> {
    #[inline]
    pub(crate) fn new(input: &'a [u8]) -> Self {
        Self {
            cursor: Cursor::new(input),
            at: 0,
            line: 1,
        }
    }

    pub(crate) const fn input(&self) -> &'a [u8] {
        self.cursor.input()
    }

    /// The physical lines passed so far; a last one without line feed counts at the end of input.
    pub(crate) fn lines(&self) -> u64 {
        let is_open = self.input().last().is_some_and(|&byte| byte != b'\n');
        self.line - 1 + u64::from(is_open && self.at >= self.input().len())
    }

    /// Parses the next record, good or bad, and delivers it; `None` at the end of the input.
    #[inline(always)]
    pub(crate) fn record<S: Sink<'a>>(&mut self, sink: &mut S) -> Option<Result<Body, Error>> {
        let start = self.skip_blank()?;
        match self.body(start, sink) {
            Ok(body) => {
                sink.point(body.timestamp);
                Some(Ok(body))
            }
            Err(fault) => {
                let error = self.recover(start, fault);
                sink.error(error);
                Some(Err(error))
            }
        }
    }

    /// Goes over blanks, blank lines and comments to the first byte of a record.
    #[inline(always)]
    fn skip_blank(&mut self) -> Option<usize> {
        loop {
            match self.cursor.byte(self.at) {
                b' ' => {
                    self.cursor.next();
                    self.at += 1;
                }
                b'\t' => self.at += 1,
                b'\r' if self.is_line_end(self.at) => self.at += 1,
                b'\n' if self.at >= self.input().len() => return None,
                b'\n' => {
                    let at = self.cursor.next();
                    self.end_line(at);
                }
                b'#' => self.skip_line(),
                _ => return Some(self.at),
            }
        }
    }

    /// Goes behind the next line feed, whatever stands in front of it.
    fn skip_line(&mut self) {
        loop {
            let at = self.cursor.next();
            if self.cursor.byte(at) == b'\n' {
                return self.end_line(at);
            }
        }
    }

    /// Goes behind the line feed at `at`, or stays there where it is the end of the input.
    #[inline(always)]
    fn end_line(&mut self, at: usize) {
        let is_line_feed = at < self.input().len();
        self.at = at + usize::from(is_line_feed);
        self.line += u64::from(is_line_feed);
    }

    /// Goes on behind the first line feed at or after the place of `fault`.
    #[cold]
    fn recover(&mut self, start: usize, fault: Fault) -> Error {
        let line = self.line;
        let inside = self.cursor.slice(start, fault.resume);
        self.line += inside
            .iter()
            .map(|&byte| u64::from(byte == b'\n'))
            .sum::<u64>();
        self.cursor.seek(fault.resume);
        self.at = fault.resume;
        self.skip_line();
        Error::new(fault.kind, fault.offset, line)
    }

    /// `measurement[,tag=value]* SP+ field=value[,field=value]* [SP+ timestamp] SP*`
    #[inline(always)]
    fn body<S: Sink<'a>>(&mut self, start: usize, sink: &mut S) -> Result<Body, Fault> {
        let key_end = self.series(start, sink)?;
        let fields_start = self.skip_spaces(key_end + 1);
        let line = self.line;
        let mut inner_lines = 0;
        let mut field = self.field(fields_start, fields_start, &mut inner_lines, sink)?;
        while field.next_byte == b',' {
            field = self.field(fields_start, field.next + 1, &mut inner_lines, sink)?;
        }
        let fields_end = field.end;
        let (timestamp, end) = self.timestamp(field)?;
        self.line += inner_lines;
        Ok(Body {
            start,
            key_end,
            fields_start,
            fields_end,
            end,
            timestamp,
            line,
        })
    }

    /// Delivers the series key and, if asked for, its parts; returns its end.
    ///
    /// Looks for the end alone first, since of a known series nothing else matters.
    #[inline(always)]
    fn series<S: Sink<'a>>(&mut self, start: usize, sink: &mut S) -> Result<usize, Fault> {
        let mut stop = self.cursor.seek_end(start);
        while self.cursor.byte(stop) == b'\\' {
            let is_escape = Escapes::Name.covers(self.cursor.byte(stop + 1));
            stop = self.cursor.seek_end(stop + 1 + usize::from(is_escape));
        }
        let end = self.trim(start, stop);
        match sink.series(self.line, self.cursor.slice(start, end)) {
            Series::Known => {}
            Series::Unknown => {
                self.cursor.seek(start);
                self.split(start, sink)?;
            }
        }
        if self.cursor.byte(stop) == b'\n' {
            return Err(Fault::at(ErrorKind::FieldMissing, end));
        }
        Ok(end)
    }

    /// Delivers measurement and tags.
    #[inline(always)]
    fn split<S: Sink<'a>>(&mut self, start: usize, sink: &mut S) -> Result<(), Fault> {
        let name = self.name(start, Escapes::Measurement, false);
        if name.end == start {
            return Err(Fault::at(ErrorKind::MeasurementMissing, start));
        }
        self.check(start, name.end, Name::Measurement)?;
        sink.measurement(name.text);
        let mut next = name.next;
        while self.cursor.byte(next) == b',' {
            let key_start = next + 1;
            let key = self.name(key_start, Escapes::Name, true);
            self.check(key_start, key.end, Name::Tag)?;
            if key.end == key_start {
                return Err(Fault::at(ErrorKind::TagKeyMissing, key_start));
            }
            if self.cursor.byte(key.next) != b'=' {
                return Err(Fault::at(ErrorKind::TagEqualsMissing, key.end));
            }
            let value_start = key.next + 1;
            let value = self.name(value_start, Escapes::Name, false);
            if value.end == value_start {
                return Err(Fault::at(ErrorKind::TagValueMissing, value_start));
            }
            self.check(value_start, value.end, Name::Tag)?;
            sink.tag(key.text, value.text);
            next = value.next;
        }
        Ok(())
    }

    /// Delivers one field that begins at `start`.
    #[inline(always)]
    fn field<S: Sink<'a>>(
        &mut self,
        first: usize,
        start: usize,
        inner_lines: &mut u64,
        sink: &mut S,
    ) -> Result<Stop, Fault> {
        let key = self.name(start, Escapes::Name, true);
        self.check(start, key.end, Name::Field)?;
        if key.end == start || self.cursor.byte(key.next) != b'=' {
            return Err(Fault::at(self.missing(first, start, &key), key.end));
        }
        let value_start = key.next + 1;
        let (value, stop) = if self.cursor.byte(value_start) == b'"' {
            self.string(value_start, inner_lines)?
        } else {
            self.bare(value_start)?
        };
        sink.raw_field(key.text, value)
            .map_err(|kind| Fault::at(kind, value_start))?;
        Ok(stop)
    }

    /// What a field without key or without `=` lacks.
    #[cold]
    fn missing(&self, first: usize, start: usize, key: &Token<'a>) -> ErrorKind {
        if key.end > start {
            ErrorKind::FieldEqualsMissing
        } else if start == first && self.cursor.byte(key.next) == b'\n' {
            ErrorKind::FieldMissing
        } else {
            ErrorKind::FieldKeyMissing
        }
    }

    /// A value without quotes: runs to a comma, a space or the end of the record.
    #[inline(always)]
    fn bare(&mut self, start: usize) -> Result<(RawValue<'a>, Stop), Fault> {
        let next = self.cursor.next();
        let next_byte = self.cursor.byte(next);
        let end = match next_byte {
            b',' | b' ' => next,
            b'\n' => self.trim(start, next),
            // An equals sign, a quote, a backslash: no value holds one.
            _ => return Err(Fault::at(ErrorKind::ValueInvalid, start)),
        };
        if end == start {
            return Err(Fault::at(ErrorKind::ValueMissing, start));
        }
        Ok((
            RawValue::bare(self.cursor.slice(start, end)),
            Stop {
                end,
                next,
                next_byte,
            },
        ))
    }

    /// A string whose opening quote is at `quote`.
    #[inline(always)]
    fn string(
        &mut self,
        quote: usize,
        inner_lines: &mut u64,
    ) -> Result<(RawValue<'a>, Stop), Fault> {
        let start = self.cursor.next() + 1;
        let (mut at, mut is_escaped, mut line_feeds) = (self.cursor.next(), false, 0);
        loop {
            match self.cursor.byte(at) {
                b'"' => break,
                b'\\' if Escapes::String.covers(self.cursor.byte(at + 1)) => {
                    is_escaped = true;
                    self.cursor.next();
                }
                b'\n' if at >= self.input().len() => {
                    let kind = ErrorKind::StringUnclosed;
                    return Err(Fault {
                        kind,
                        offset: quote,
                        resume: at,
                    });
                }
                b'\n' => line_feeds += 1,
                _ => {}
            }
            at = self.cursor.next();
        }
        let raw = self.cursor.slice(start, at);
        if self.cursor.is_suspect(start) {
            // Goes on behind the string: what is inside it is no line.
            let offset = start + valid_utf8_len(raw);
            if offset < at {
                return Err(Fault {
                    kind: ErrorKind::NotUtf8,
                    offset,
                    resume: at,
                });
            }
        }
        *inner_lines += line_feeds;
        let value = RawValue::string(Text::new(raw, Escapes::String, is_escaped));
        Ok((value, self.after_string(at + 1)?))
    }

    /// The byte that must follow a string.
    #[inline(always)]
    fn after_string(&mut self, end: usize) -> Result<Stop, Fault> {
        let is_good = match self.cursor.byte(end) {
            b',' | b' ' | b'\n' => true,
            b'\r' => self.is_line_end(end),
            _ => false,
        };
        if !is_good {
            return Err(Fault::at(ErrorKind::ValueTrailing, end));
        }
        let next = self.cursor.next();
        Ok(Stop {
            end,
            next,
            next_byte: self.cursor.byte(next),
        })
    }

    /// `[SP+ timestamp] SP*` behind the fields; returns it with the end of the record's last part.
    #[inline(always)]
    fn timestamp(&mut self, fields: Stop) -> Result<(Option<i64>, usize), Fault> {
        if fields.next_byte == b'\n' {
            self.end_line(fields.next);
            return Ok((None, fields.end));
        }
        let start = self.skip_spaces(fields.next + 1);
        if self.is_line_end(start) {
            let next = self.cursor.next();
            self.end_line(next);
            return Ok((None, fields.end));
        }
        let mut next = self.cursor.next();
        let end = match self.cursor.byte(next) {
            b'\n' => self.trim(start, next),
            b' ' => {
                let trailing = self.skip_spaces(next + 1);
                let end = next;
                if self.is_line_end(trailing) {
                    next = self.cursor.next();
                    end
                } else {
                    let kind = ErrorKind::TimestampTrailing;
                    return Err(Fault::at(kind, trailing));
                }
            }
            _ => return Err(Fault::at(ErrorKind::TimestampInvalid, start)),
        };
        let timestamp = number::signed(self.cursor.slice(start, end))
            .map_err(|kind| Fault::at(as_timestamp(kind), start))?;
        self.end_line(next);
        Ok((Some(timestamp), end))
    }

    /// The name from `start` on; `=` ends it or is data.
    #[inline(always)]
    fn name(&mut self, start: usize, escapes: Escapes, equals_ends: bool) -> Token<'a> {
        let mut next = self.cursor.next();
        let mut is_escaped = false;
        loop {
            match self.cursor.byte(next) {
                b'\\' => {
                    if escapes.covers(self.cursor.byte(next + 1)) {
                        is_escaped = true;
                        self.cursor.next();
                    }
                }
                b'"' => {}
                b'=' if !equals_ends => {}
                _ => break,
            }
            next = self.cursor.next();
        }
        let end = self.trim(start, next);
        Token {
            text: Text::new(self.cursor.slice(start, end), escapes, is_escaped),
            end,
            next,
        }
    }

    /// Refuses a name with a tab, a measurement with a NUL, and what is not UTF-8.
    #[inline(always)]
    fn check(&self, start: usize, end: usize, name: Name) -> Result<(), Fault> {
        if self.cursor.is_suspect(start) {
            self.check_bytes(start, end, name)
        } else {
            Ok(())
        }
    }

    #[cold]
    fn check_bytes(&self, start: usize, end: usize, name: Name) -> Result<(), Fault> {
        let bytes = self.cursor.slice(start, end);
        let is_control = |byte: &u8| *byte == b'\t' || (*byte == 0 && name == Name::Measurement);
        let control = bytes.iter().position(is_control).unwrap_or(bytes.len());
        let utf8 = valid_utf8_len(bytes);
        if control.min(utf8) == bytes.len() {
            return Ok(());
        }
        let kind = match name {
            _ if utf8 < control => ErrorKind::NotUtf8,
            Name::Measurement => ErrorKind::MeasurementControl,
            Name::Tag => ErrorKind::TagControl,
            Name::Field => ErrorKind::FieldControl,
        };
        Err(Fault::at(kind, start + control.min(utf8)))
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

    /// Whether the record ends at `at`: at a line feed, the end, or a carriage return before one.
    #[inline(always)]
    fn is_line_end(&self, at: usize) -> bool {
        match self.cursor.byte(at) {
            b'\n' => true,
            b'\r' => self.cursor.byte(at + 1) == b'\n',
            _ => false,
        }
    }

    /// The end of what stands from `start` on and is ended by the byte at `next`: a carriage return
    /// in front of a line feed belongs to the line end.
    #[inline(always)]
    fn trim(&self, start: usize, next: usize) -> usize {
        let is_crlf =
            self.cursor.byte(next) == b'\n' && next > start && self.cursor.byte(next - 1) == b'\r';
        next - usize::from(is_crlf)
    }
}

/// A name, its end, and the byte that ended it.
struct Token<'a> {
    text: Text<'a>,
    end: usize,
    next: usize,
}

/// The end of a field value, and the comma, space or line feed behind it.
#[derive(Copy, Clone)]
struct Stop {
    end: usize,
    next: usize,
    next_byte: u8,
}

/// How many bytes from the front are UTF-8.
#[cold]
fn valid_utf8_len(bytes: &[u8]) -> usize {
    core::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len)
}

const fn as_timestamp(kind: ErrorKind) -> ErrorKind {
    match kind {
        ErrorKind::ValueOutOfRange => ErrorKind::TimestampOutOfRange,
        _ => ErrorKind::TimestampInvalid,
    }
}
