//! Points to line protocol: escaped, checked, into a buffer of the caller's.
//!
//! Writes nothing that [`parse`](crate::parse) would not read back as it was given; what the
//! protocol cannot say is an error. Writes for the default [`Dialect`](crate::Dialect). The buffer
//! holds whole lines only: one that does not fit, or is not ended, leaves no trace.

use core::fmt::{self, Write};

use crate::text::{Escapes, Text};
use crate::value::FieldValue;

/// Writes lines into a buffer.
///
/// ```
/// # fn main() -> Result<(), arc_lp::WriteError> {
/// let mut buffer = [0; 128];
/// let mut writer = arc_lp::LineWriter::new(&mut buffer);
/// let mut line = writer.line("pump house")?;
/// line.tag("site", "north, upper")?;
/// line.field("rpm", 1450_i64)?.field("state", "on")?;
/// line.end(Some(1_700_000_000))?;
/// let expected = "pump\\ house,site=north\\,\\ upper rpm=1450i,state=\"on\" 1700000000\n";
/// assert_eq!(writer.written(), expected.as_bytes());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LineWriter<'b> {
    buffer: &'b mut [u8],
    length: usize,
}

impl<'b> LineWriter<'b> {
    /// Writes from the front of `buffer` on.
    ///
    /// ```
    /// let mut buffer = [0; 128];
    /// let writer = arc_lp::LineWriter::new(&mut buffer);
    /// assert!(writer.written().is_empty());
    /// ```
    #[must_use]
    pub const fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer, length: 0 }
    }

    /// Returns the lines written so far, each with its line feed.
    #[must_use]
    pub fn written(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }

    /// Forgets the lines written so far: the buffer is free again.
    ///
    /// ```
    /// let mut buffer = [0; 32];
    /// let mut writer = arc_lp::LineWriter::new(&mut buffer);
    /// for rpm in [1450_i64, 1451, 1452] {
    ///     let mut line = writer.line("pump")?;
    ///     line.field("rpm", rpm)?;
    ///     line.end(None)?;
    ///     println!("{}", String::from_utf8_lossy(writer.written()));
    ///     writer.clear(); // once it is sent
    /// }
    /// # Ok::<(), arc_lp::WriteError>(())
    /// ```
    pub const fn clear(&mut self) {
        self.length = 0;
    }

    /// Begins a line.
    ///
    /// ```
    /// use arc_lp::{LineWriter, WriteError};
    ///
    /// let mut buffer = [0; 128];
    /// let mut writer = LineWriter::new(&mut buffer);
    /// assert!(writer.line("pump house").is_ok());
    /// assert_eq!(writer.line("#pump").err(), Some(WriteError::UnwritableName));
    /// ```
    ///
    /// # Errors
    ///
    /// [`WriteError::EmptyName`]; [`WriteError::UnwritableName`] for a tab, line feed or NUL, or a
    /// `#` at the start, which would make the line a comment; [`WriteError::Full`].
    pub fn line<'t>(&mut self, measurement: impl Into<Text<'t>>) -> Result<Line<'_, 'b>, WriteError> {
        let measurement = measurement.into();
        let mut bytes = measurement.pieces().flatten();
        if bytes.next() == Some(&b'#') || measurement.raw().contains(&0) {
            return Err(WriteError::UnwritableName);
        }
        let end = self.length;
        let mut line = Line { writer: self, end, has_field: false };
        line.name(measurement, Escapes::Measurement)?;
        Ok(line)
    }
}

/// A line that is being written. Only [`end`](Line::end) makes it stay.
#[derive(Debug)]
#[must_use = "a line that is not ended is not written"]
pub struct Line<'w, 'b> {
    writer: &'w mut LineWriter<'b>,
    end: usize,
    has_field: bool,
}

impl Line<'_, '_> {
    /// Adds a tag. Tags come before the fields.
    ///
    /// ```
    /// let mut buffer = [0; 128];
    /// let mut writer = arc_lp::LineWriter::new(&mut buffer);
    /// let mut line = writer.line("pump")?;
    /// line.tag("id", "7")?.tag("site", "north hall")?.field("on", true)?;
    /// line.end(None)?;
    /// assert_eq!(writer.written(), b"pump,id=7,site=north\\ hall on=true\n");
    /// # Ok::<(), arc_lp::WriteError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WriteError::EmptyName`], [`WriteError::UnwritableName`] for a tab or line feed in the key
    /// or the value, [`WriteError::TagAfterField`], [`WriteError::Full`]. The line must then be
    /// dropped.
    pub fn tag<'t>(&mut self, key: impl Into<Text<'t>>, value: impl Into<Text<'t>>) -> Result<&mut Self, WriteError> {
        if self.has_field {
            return Err(WriteError::TagAfterField);
        }
        self.push(b',')?;
        self.name(key.into(), Escapes::Name)?;
        self.push(b'=')?;
        self.name(value.into(), Escapes::Name)?;
        Ok(self)
    }

    /// Adds a field.
    ///
    /// ```
    /// use arc_lp::{LineWriter, WriteError};
    ///
    /// let mut buffer = [0; 128];
    /// let mut writer = LineWriter::new(&mut buffer);
    /// let mut line = writer.line("pump")?;
    /// line.field("rpm", 1450_i64)?.field("load", 0.75)?.field("state", "on")?;
    /// assert_eq!(line.field("heat", f64::NAN).err(), Some(WriteError::NotFinite));
    /// # Ok::<(), arc_lp::WriteError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WriteError::EmptyName`], [`WriteError::UnwritableName`] for a tab or line feed in the key,
    /// [`WriteError::NotFinite`], [`WriteError::Full`]. The line must then be dropped.
    pub fn field<'t>(
        &mut self,
        key: impl Into<Text<'t>>,
        value: impl Into<FieldValue<'t>>,
    ) -> Result<&mut Self, WriteError> {
        self.push(if self.has_field { b',' } else { b' ' })?;
        self.has_field = true;
        self.name(key.into(), Escapes::Name)?;
        self.push(b'=')?;
        self.value(value.into())?;
        Ok(self)
    }

    /// Ends the line; without a timestamp the receiver's clock gives one.
    ///
    /// ```
    /// let mut buffer = [0; 128];
    /// let mut writer = arc_lp::LineWriter::new(&mut buffer);
    /// let mut line = writer.line("pump")?;
    /// line.field("rpm", 1450_i64)?;
    /// drop(line); // a line that is not ended leaves no trace
    /// let mut line = writer.line("fan")?;
    /// line.field("on", true)?;
    /// line.end(Some(17))?;
    /// assert_eq!(writer.written(), b"fan on=true 17\n");
    /// # Ok::<(), arc_lp::WriteError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WriteError::NoField`], [`WriteError::Full`]. Nothing of the line is written then.
    pub fn end(mut self, timestamp: Option<i64>) -> Result<(), WriteError> {
        if !self.has_field {
            return Err(WriteError::NoField);
        }
        if let Some(timestamp) = timestamp {
            self.push(b' ')?;
            self.format(format_args!("{timestamp}"))?;
        }
        self.push(b'\n')?;
        self.writer.length = self.end;
        Ok(())
    }

    fn value(&mut self, value: FieldValue<'_>) -> Result<(), WriteError> {
        match value {
            FieldValue::Float(value) => self.float(value),
            FieldValue::Integer(value) => self.format(format_args!("{value}i")),
            FieldValue::Unsigned(value) => self.format(format_args!("{value}u")),
            FieldValue::Boolean(value) => self.format(format_args!("{value}")),
            FieldValue::String(text) => {
                self.push(b'"')?;
                self.escape(text, Escapes::String)?;
                self.push(b'"')
            }
        }
    }

    /// As few digits as say the number exactly; with an exponent where there would be many zeros.
    fn float(&mut self, value: f64) -> Result<(), WriteError> {
        let size = value.abs();
        if !value.is_finite() {
            Err(WriteError::NotFinite)
        } else if size != 0.0 && !(1e-5..1e16).contains(&size) {
            self.format(format_args!("{value:e}"))
        } else {
            self.format(format_args!("{value}"))
        }
    }

    fn name(&mut self, name: Text<'_>, escapes: Escapes) -> Result<(), WriteError> {
        if name.raw().is_empty() {
            return Err(WriteError::EmptyName);
        }
        if name.raw().iter().any(|byte| matches!(byte, b'\t' | b'\n')) {
            return Err(WriteError::UnwritableName);
        }
        self.escape(name, escapes)
    }

    /// Puts a backslash in front of whatever needs one there.
    fn escape(&mut self, text: Text<'_>, escapes: Escapes) -> Result<(), WriteError> {
        for byte in text.strs().flat_map(str::bytes) {
            if escapes.covers(byte) {
                self.push(b'\\')?;
            }
            self.push(byte)?;
        }
        Ok(())
    }

    fn push(&mut self, byte: u8) -> Result<(), WriteError> {
        *self.writer.buffer.get_mut(self.end).ok_or(WriteError::Full)? = byte;
        self.end += 1;
        Ok(())
    }

    fn format(&mut self, arguments: fmt::Arguments<'_>) -> Result<(), WriteError> {
        self.write_fmt(arguments).map_err(|_| WriteError::Full)
    }
}

/// Writes numbers into the line.
impl Write for Line<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().try_for_each(|byte| self.push(byte)).map_err(|_| fmt::Error)
    }
}

/// Why a line cannot be written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// The buffer has no room for the line. What was written before is still there.
    Full,
    /// A measurement, tag key, tag value or field key is empty.
    EmptyName,
    /// A name holds what the protocol cannot say: a tab, a line feed, a NUL or a leading `#` in a
    /// measurement.
    UnwritableName,
    /// A float is infinite or not a number.
    NotFinite,
    /// A tag was given after a field.
    TagAfterField,
    /// The line has no field.
    NoField,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "the buffer has no room for the line",
            Self::EmptyName => "a name is empty",
            Self::UnwritableName => "a name holds a character that line protocol cannot say",
            Self::NotFinite => "a float is not finite",
            Self::TagAfterField => "a tag was given behind a field",
            Self::NoField => "the line has no field",
        })
    }
}

impl core::error::Error for WriteError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_line(buffer: &mut [u8], name: &str) -> Result<usize, WriteError> {
        let mut writer = LineWriter::new(buffer);
        let mut line = writer.line(name)?;
        line.tag(name, name)?.field(name, name)?.field("f", -0.5)?;
        line.end(Some(-1))?;
        Ok(writer.written().len())
    }

    #[test]
    fn a_line_that_does_not_fit_leaves_no_trace() {
        let line = "a,a=a a=\"a\",f=-0.5 -1\n";
        for length in 0..line.len() {
            assert_eq!(write_line(&mut [0; 64][..length], "a"), Err(WriteError::Full));
        }
        assert_eq!(write_line(&mut [0; 64], "a"), Ok(line.len()));

        let mut buffer = [0; 10];
        let mut writer = LineWriter::new(&mut buffer);
        writer.line("m").unwrap().end(None).unwrap_err();
        let mut first = writer.line("m").unwrap();
        first.field("f", true).unwrap();
        first.end(None).unwrap();
        assert_eq!(writer.line("much too long").unwrap_err(), WriteError::Full);
        assert_eq!(writer.written(), b"m f=true\n");
        writer.clear();
        assert_eq!(writer.written(), b"");
    }

    #[test]
    fn what_cannot_be_read_back_is_refused() {
        let mut buffer = [0; 64];
        let cases = [
            ("", WriteError::EmptyName),
            ("a\tb", WriteError::UnwritableName),
            ("a\nb", WriteError::UnwritableName),
            ("a\0b", WriteError::UnwritableName),
            ("#a", WriteError::UnwritableName),
        ];
        for (name, expected) in cases {
            assert_eq!(write_line(&mut buffer, name), Err(expected), "{name:?}");
        }
        let mut writer = LineWriter::new(&mut buffer);
        let mut line = writer.line("m").unwrap();
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(line.field("f", value).unwrap_err(), WriteError::NotFinite);
        }
        assert_eq!(line.tag("t", "v").unwrap_err(), WriteError::TagAfterField);
        assert_eq!(writer.line("m").unwrap().end(None), Err(WriteError::NoField));
    }
}
