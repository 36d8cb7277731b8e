//! The first part of a record: `measurement[,tag=value]*`, and names wherever they stand.

use core::hint::cold_path;

use super::{Bad, Walker, valid_utf8_len};
use crate::error::ErrorKind;
use crate::push::{Series, Sink};
use crate::text::{Escapes, Text};

/// Which name is wrong if it holds more than plain characters.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Name {
    Measurement,
    Tag,
    Field,
}

/// A name and its end, and the byte that ended it.
pub(super) struct Token<'a> {
    pub(super) text: Text<'a>,
    pub(super) end: usize,
    pub(super) next: usize,
    pub(super) next_byte: u8,
}

impl<'a> Walker<'_, 'a> {
    /// Delivers the series key and, if asked for, its parts; returns its end, which is a space.
    ///
    /// Looks for the end alone first, since of a known series nothing else matters.
    #[inline(always)]
    pub(super) fn series<S: Sink<'a>>(&mut self, start: usize, sink: &mut S) -> Result<usize, Bad> {
        let mut stop = self.cursor.seek_end(start);
        while self.cursor.byte(stop) == b'\\' {
            let is_escape = Escapes::Name.covers(self.cursor.byte(stop + 1));
            stop = self.cursor.seek_end(stop + 1 + usize::from(is_escape));
        }
        let is_last = self.cursor.byte(stop) == b'\n';
        let end = if is_last { self.trim(start, stop) } else { stop };
        match sink.series(self.line, self.cursor.slice(start, end)) {
            Series::Known => {}
            Series::Unknown => {
                self.cursor.seek(start);
                self.split(start, sink)?;
            }
        }
        if is_last { Err(self.bad(ErrorKind::FieldMissing, end)) } else { Ok(end) }
    }

    /// Delivers measurement and tags.
    #[inline(always)]
    fn split<S: Sink<'a>>(&mut self, start: usize, sink: &mut S) -> Result<(), Bad> {
        let name = self.name(start, Escapes::Measurement, false);
        if name.end == start {
            return Err(self.bad(ErrorKind::MeasurementMissing, start));
        }
        self.check(start, name.end, Name::Measurement)?;
        sink.measurement(name.text);
        let (mut next, mut next_byte) = (name.next, name.next_byte);
        while next_byte == b',' {
            let key_start = next + 1;
            let key = self.name(key_start, Escapes::Name, true);
            self.check(key_start, key.end, Name::Tag)?;
            if key.end == key_start {
                return Err(self.bad(ErrorKind::TagKeyMissing, key_start));
            }
            if key.next_byte != b'=' {
                return Err(self.bad(ErrorKind::TagEqualsMissing, key.end));
            }
            let value_start = key.next + 1;
            let value = self.name(value_start, Escapes::Name, false);
            if value.end == value_start {
                return Err(self.bad(ErrorKind::TagValueMissing, value_start));
            }
            self.check(value_start, value.end, Name::Tag)?;
            sink.tag(key.text, value.text);
            (next, next_byte) = (value.next, value.next_byte);
        }
        Ok(())
    }

    /// The name from `start` on; `=` ends it or is data.
    #[inline(always)]
    pub(super) fn name(&mut self, start: usize, escapes: Escapes, equals_ends: bool) -> Token<'a> {
        let mut next = self.cursor.next();
        let mut next_byte = self.cursor.byte(next);
        let is_plain = if equals_ends { next_byte == b'=' } else { matches!(next_byte, b',' | b' ') };
        let (mut end, mut is_escaped) = (next, false);
        if !is_plain {
            cold_path();
            (next, is_escaped) = self.end_of_name(next, escapes, equals_ends);
            next_byte = self.cursor.byte(next);
            end = if next_byte == b'\n' { self.trim(start, next) } else { next };
        }
        let text = Text::new(self.cursor.slice(start, end), escapes, is_escaped);
        Token { text, end, next, next_byte }
    }

    /// The byte that ends the name in which `next` is the first structural byte; and whether there is
    /// an escape in front of it.
    #[inline(always)]
    fn end_of_name(&mut self, mut next: usize, escapes: Escapes, equals_ends: bool) -> (usize, bool) {
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
                _ => return (next, is_escaped),
            }
            next = self.cursor.next();
        }
    }

    /// Refuses a name with a tab, a measurement with a NUL, and what is not UTF-8.
    #[inline(always)]
    pub(super) fn check(&mut self, start: usize, end: usize, name: Name) -> Result<(), Bad> {
        if self.cursor.is_suspect(start)
            && let Some((kind, at)) = find_bad(self.cursor.slice(start, end), name)
        {
            return Err(self.bad(kind, start + at));
        }
        Ok(())
    }
}

/// The first byte that a name must not hold.
#[cold]
fn find_bad(bytes: &[u8], name: Name) -> Option<(ErrorKind, usize)> {
    let is_control = |byte: &u8| *byte == b'\t' || (*byte == 0 && name == Name::Measurement);
    let control = bytes.iter().position(is_control).unwrap_or(bytes.len());
    let utf8 = valid_utf8_len(bytes);
    if control.min(utf8) == bytes.len() {
        return None;
    }
    let kind = match name {
        _ if utf8 < control => ErrorKind::NotUtf8,
        Name::Measurement => ErrorKind::MeasurementControl,
        Name::Tag => ErrorKind::TagControl,
        Name::Field => ErrorKind::FieldControl,
    };
    Some((kind, control.min(utf8)))
}
