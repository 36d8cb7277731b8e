//! The first part of a record: `measurement[,tag=value]*`, and names wherever they stand.

use core::hint::cold_path;

use super::{Bad, Visitor, Walker, valid_utf8_len};
use crate::dialect::Dialect;
use crate::error::ErrorKind;
use crate::push::Series;
use crate::text::{Escapes, Span};

/// Which name is wrong if it holds more than plain characters.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Name {
    Measurement,
    Tag,
    Field,
}

impl Name {
    const fn control(self) -> ErrorKind {
        match self {
            Self::Measurement => ErrorKind::MeasurementControl,
            Self::Tag => ErrorKind::TagControl,
            Self::Field => ErrorKind::FieldControl,
        }
    }
}

/// A name, and the byte that ended it.
pub(super) struct NameToken {
    pub(super) span: Span,
    pub(super) next: usize,
    next_byte: u8,
}

impl<'a> Walker<'_, 'a> {
    /// Delivers the series key and, if asked for, its parts; returns its end, which is a space.
    ///
    /// Looks for the end alone first, since of a known series nothing else matters.
    #[inline(always)]
    pub(super) fn series<V: Visitor<'a>>(&mut self, start: usize, visitor: &mut V) -> Result<usize, Bad> {
        let mut stop = self.cursor.seek_and_find_end(start);
        while self.cursor.byte(stop) == b'\\' {
            let is_escape = self.covers(Escapes::Name, stop + 1);
            stop = self.cursor.find_end(stop + 1 + usize::from(is_escape));
        }
        let is_last = self.cursor.byte(stop) == b'\n';
        let end = if is_last { self.trim(start, stop) } else { stop };
        match visitor.series(self.line, self.cursor.slice(start, end)) {
            Series::Known => self.cursor.skip_to(end + 1),
            Series::Unknown => self.split(start, visitor)?,
        }
        if is_last { Err(self.bad(ErrorKind::FieldMissing, end)) } else { Ok(end) }
    }

    /// Delivers measurement and tags.
    #[inline(always)]
    fn split<V: Visitor<'a>>(&mut self, start: usize, visitor: &mut V) -> Result<(), Bad> {
        let name = self.value(start, Name::Measurement)?;
        visitor.measurement(self.cursor.input(), name.span);
        let (mut next, mut next_byte) = (name.next, name.next_byte);
        while next_byte == b',' {
            let key = self.key(next + 1, Name::Tag)?;
            let value = self.value(key.next + 1, Name::Tag)?;
            visitor.tag(self.cursor.input(), key.span, value.span);
            (next, next_byte) = (value.next, value.next_byte);
        }
        Ok(())
    }

    /// A measurement or tag value: not empty, ended by a comma, a space or the end of the record.
    #[inline(always)]
    fn value(&mut self, start: usize, name: Name) -> Result<NameToken, Bad> {
        let mut next = self.cursor.next();
        let mut next_byte = self.cursor.byte(next);
        let (mut end, mut escapes) = (next, None);
        if !matches!(next_byte, b',' | b' ') {
            cold_path();
            let plain = if name == Name::Measurement { Escapes::Measurement } else { Escapes::Name };
            (next, escapes) = self.end_of_name(next, plain, false);
            next_byte = self.cursor.byte(next);
            end = if next_byte == b'\n' { self.trim(start, next) } else { next };
        }
        if end <= start {
            let is_tag = name == Name::Tag;
            let missing = if is_tag { ErrorKind::TagValueMissing } else { ErrorKind::MeasurementMissing };
            return Err(self.bad(missing, start));
        }
        self.check(start, end, name)?;
        Ok(NameToken { span: Span { start, end, escapes }, next, next_byte })
    }

    /// A tag key or field key: not empty, ended by `=`.
    #[inline(always)]
    pub(super) fn key(&mut self, start: usize, name: Name) -> Result<NameToken, Bad> {
        let mut next = self.cursor.next();
        let mut escapes = None;
        if self.cursor.byte(next) != b'=' {
            cold_path();
            (next, escapes) = self.end_of_name(next, Escapes::Name, true);
            if self.cursor.byte(next) != b'=' {
                return Err(self.bad_key(start, next, name));
            }
        }
        if next <= start {
            return Err(self.bad_key(start, next, name));
        }
        self.check(start, next, name)?;
        Ok(NameToken { span: Span { start, end: next, escapes }, next, next_byte: b'=' })
    }

    /// What is wrong with a key from `start` to `next` that is empty or not ended by `=`.
    #[inline(always)]
    fn bad_key(&mut self, start: usize, next: usize, name: Name) -> Bad {
        let is_last = self.cursor.byte(next) == b'\n';
        let end = if is_last { self.trim(start, next) } else { next };
        if let Err(bad) = self.check(start, end, name) {
            return bad;
        }
        let kind = match (name, end > start) {
            (Name::Field, true) => ErrorKind::FieldEqualsMissing,
            (Name::Field, false) => ErrorKind::FieldKeyMissing,
            (_, true) => ErrorKind::TagEqualsMissing,
            (_, false) => ErrorKind::TagKeyMissing,
        };
        self.bad(kind, end)
    }

    /// The byte that ends the name in which `next` is the first structural byte; and `escapes` if
    /// there is one in front of it.
    #[inline(always)]
    fn end_of_name(&mut self, mut next: usize, escapes: Escapes, equals_ends: bool) -> (usize, Option<Escapes>) {
        let mut found = None;
        loop {
            match self.cursor.byte(next) {
                b'\\' => {
                    if self.covers(escapes, next + 1) {
                        found = Some(self.cursor.dialect().escapes(escapes));
                        self.cursor.next();
                    }
                }
                b'"' => {}
                b'=' if !equals_ends => {}
                _ => return (next, found),
            }
            next = self.cursor.next();
        }
    }

    /// Whether a backslash in front of `at` is an escape in the dialect.
    #[inline(always)]
    fn covers(&self, escapes: Escapes, at: usize) -> bool {
        let byte = self.cursor.byte(at);
        escapes.covers(byte) && (byte != b'\\' || !self.cursor.dialect().keeps_backslashes())
    }

    /// Refuses a name with a tab, a measurement with a NUL, and what is not UTF-8 if it must be.
    #[inline(always)]
    fn check(&mut self, start: usize, end: usize, name: Name) -> Result<(), Bad> {
        if self.cursor.is_suspect(start)
            && self.cursor.may_be_bad(start..end)
            && let Some((kind, at)) = find_bad(self.cursor.slice(start, end), name, self.cursor.dialect())
        {
            return Err(self.bad(kind, start + at));
        }
        Ok(())
    }
}

/// The first byte that a name must not hold.
#[cold]
fn find_bad(bytes: &[u8], name: Name, dialect: Dialect) -> Option<(ErrorKind, usize)> {
    let is_control = |byte: &u8| *byte == b'\t' || (*byte == 0 && name == Name::Measurement);
    let control = bytes.iter().position(is_control).unwrap_or(bytes.len());
    let utf8 = if dialect.is_lossy() { bytes.len() } else { valid_utf8_len(bytes) };
    if control.min(utf8) == bytes.len() {
        return None;
    }
    let kind = if utf8 < control { ErrorKind::NotUtf8 } else { name.control() };
    Some((kind, control.min(utf8)))
}
