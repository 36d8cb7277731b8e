//! The other parts of a record: `field=value[,field=value]* [SP+ timestamp] SP*`.

use core::hint::cold_path;

use super::series::Name;
use super::{Bad, Visitor, Walker, valid_utf8_len};
use crate::error::ErrorKind;
use crate::number;

use crate::text::{Escapes, Span};
use crate::value::RawValue;

/// The end of a field value, and the comma, space or line feed after it.
#[derive(Copy, Clone)]
pub(super) struct Stop {
    pub(super) end: usize,
    next: usize,
    next_byte: u8,
}

impl<'a> Walker<'_, 'a> {
    /// Delivers the fields, of which there is at least one.
    #[inline(always)]
    pub(super) fn fields<V: Visitor<'a>>(&mut self, mut start: usize, visitor: &mut V) -> Result<Stop, Bad> {
        loop {
            let key = self.key(start, Name::Field)?;
            let value_start = key.next + 1;
            let stop = if self.cursor.byte(value_start) == b'"' {
                self.string(key.span, value_start, visitor)?
            } else {
                self.bare(key.span, value_start, visitor)?
            };
            if stop.next_byte != b',' {
                return Ok(stop);
            }
            start = stop.next + 1;
        }
    }

    /// Delivers a value without quotes: it runs to a comma, a space or the end of the record.
    #[inline(always)]
    fn bare<V: Visitor<'a>>(&mut self, key: Span, start: usize, visitor: &mut V) -> Result<Stop, Bad> {
        let next = self.cursor.next();
        let next_byte = self.cursor.byte(next);
        let end = if matches!(next_byte, b',' | b' ') {
            next
        } else if next_byte == b'\n' {
            self.trim(start, next)
        } else {
            // An equals sign, a quote, a backslash: no value holds one.
            return Err(self.bad(ErrorKind::ValueInvalid, start));
        };
        if end <= start {
            return Err(self.bad(ErrorKind::ValueMissing, start));
        }
        let value = RawValue::bare(self.cursor.input(), start, end);
        match visitor.field(key, value) {
            Ok(()) => Ok(Stop { end, next, next_byte }),
            Err(kind) => Err(self.bad(kind, start)),
        }
    }

    /// Delivers a string whose opening quote is at `quote`.
    #[inline(always)]
    fn string<V: Visitor<'a>>(&mut self, key: Span, quote: usize, visitor: &mut V) -> Result<Stop, Bad> {
        let start = self.cursor.next() + 1;
        let (mut at, mut is_escaped) = (self.cursor.next(), false);
        loop {
            match self.cursor.byte(at) {
                b'"' => break,
                b'\\' if Escapes::String.covers(self.cursor.byte(at + 1)) => {
                    is_escaped = true;
                    self.cursor.next();
                }
                b'\n' if at >= self.cursor.input().len() => {
                    return Err(self.bad_until(ErrorKind::StringUnclosed, quote, at));
                }
                b'\n' => self.line += 1,
                _ => {}
            }
            at = self.cursor.next();
        }
        if self.cursor.is_utf8_suspect(start) && !self.cursor.dialect().is_lossy() {
            let raw = self.cursor.slice(start, at);
            let good = valid_utf8_len(raw);
            if good < raw.len() {
                // Goes on after the string: what is inside it is no line.
                return Err(self.bad_until(ErrorKind::NotUtf8, start + good, at));
            }
        }
        let stop = self.after_string(at + 1)?;
        let escapes = if is_escaped { Some(Escapes::String) } else { None };
        let value = RawValue::string(self.cursor.input(), Span { start, end: at, escapes });
        match visitor.field(key, value) {
            Ok(()) => Ok(stop),
            Err(kind) => Err(self.bad(kind, quote)),
        }
    }

    /// The byte that must follow a string.
    #[inline(always)]
    fn after_string(&mut self, end: usize) -> Result<Stop, Bad> {
        let is_good = match self.cursor.byte(end) {
            b',' | b' ' | b'\n' => true,
            b'\r' => self.is_line_end(end),
            _ => false,
        };
        if !is_good {
            return Err(self.bad(ErrorKind::ValueTrailing, end));
        }
        let next = self.cursor.next();
        Ok(Stop { end, next, next_byte: self.cursor.byte(next) })
    }

    /// `[SP+ timestamp] SP*` after the fields; returns it with the end of the record's last part.
    #[inline(always)]
    pub(super) fn timestamp(&mut self, fields: Stop) -> Result<(Option<i64>, usize), Bad> {
        if fields.next_byte == b'\n' {
            self.end_line(fields.next);
            return Ok((None, fields.end));
        }
        let mut start = fields.next + 1;
        if !self.is_plain(start) {
            cold_path();
            start = self.skip_spaces(start);
            if self.is_line_end(start) {
                let next = self.cursor.next();
                self.end_line(next);
                return Ok((None, fields.end));
            }
        }
        let mut next = self.cursor.next();
        let end = match self.cursor.byte(next) {
            b'\n' => self.trim(start, next),
            b' ' => {
                let (end, trailing) = (next, self.skip_spaces(next + 1));
                if !self.is_line_end(trailing) {
                    return Err(self.bad(ErrorKind::TimestampTrailing, trailing));
                }
                next = self.cursor.next();
                end
            }
            _ => return Err(self.bad(ErrorKind::TimestampInvalid, start)),
        };
        match number::signed(self.cursor.slice(0, end), end - start) {
            Ok(timestamp) => {
                self.end_line(next);
                Ok((Some(timestamp), end))
            }
            Err(kind) => Err(self.bad(as_timestamp(kind), start)),
        }
    }
}

const fn as_timestamp(kind: ErrorKind) -> ErrorKind {
    match kind {
        ErrorKind::ValueOutOfRange => ErrorKind::TimestampOutOfRange,
        _ => ErrorKind::TimestampInvalid,
    }
}
