//! What can be wrong with a record, and where.
//!
//! An [`Error`] is three numbers: it borrows nothing, holds no text and is `Copy`. The words come
//! from `Display`, the part of the record from [`ErrorKind::part`].

use core::fmt;

/// A bad record: what is wrong, at which byte, and on which line the record starts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    offset: usize,
    line: u64,
}

impl Error {
    pub(crate) const fn new(kind: ErrorKind, offset: usize, line: u64) -> Self {
        Self { kind, offset, line }
    }

    /// Returns what is wrong.
    ///
    /// ```
    /// use arc_lp::ErrorKind;
    ///
    /// let error = arc_lp::points(b"pump rpm=14x50").find_map(Result::err);
    /// assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::ValueInvalid));
    /// ```
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the byte of the input at which the record goes wrong; never beyond its length.
    ///
    /// Two kinds point at a start instead, because the start is where to look: an unclosed string
    /// at its opening quote, a value or timestamp that is no number at its first byte.
    ///
    /// ```
    /// let input = b"pump rpm=1450i\npump rpm=14x50";
    /// for error in arc_lp::points(input).filter_map(Result::err) {
    ///     assert_eq!(&input[error.offset()..], b"14x50");
    /// }
    /// ```
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the physical line, counted from 1, on which the record starts.
    ///
    /// Blank lines, comments and line feeds inside strings count.
    ///
    /// ```
    /// let errors = arc_lp::points(b"pump rpm=1450i\npump rpm=\npump").filter_map(Result::err);
    /// assert!(errors.map(|error| error.line()).eq([2, 3]));
    /// ```
    #[must_use]
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// Returns the column of [`offset`](Self::offset) in its physical line: bytes, counted from 1.
    ///
    /// `input` is what was parsed. The line may be a later one than [`line`](Self::line) where a
    /// string holds line feeds.
    ///
    /// ```
    /// let input = b"pump rpm=1450i\npump rpm=14x50";
    /// for error in arc_lp::points(input).filter_map(Result::err) {
    ///     assert_eq!((error.line(), error.column(input)), (2, 10));
    /// }
    /// ```
    #[must_use]
    pub fn column(&self, input: &[u8]) -> usize {
        let before = input.get(..self.offset).unwrap_or(input);
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        before.len() - line_start + 1
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {} (byte {})", self.line, self.kind, self.offset)
    }
}

impl core::error::Error for Error {}

/// What is wrong with a record; [`part`](ErrorKind::part) gives the coarser answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The record starts with a comma.
    MeasurementMissing,
    /// A tab or NUL stands in the measurement.
    MeasurementControl,
    /// A comma in front of the tags is not followed by a key.
    TagKeyMissing,
    /// A tag key is not followed by `=`.
    TagEqualsMissing,
    /// The `=` of a tag is not followed by a value.
    TagValueMissing,
    /// A tab stands in a tag key or tag value.
    TagControl,
    /// The record ends without a field.
    FieldMissing,
    /// A field has no key, as after a comma that ends the fields.
    FieldKeyMissing,
    /// A field key is not followed by `=`.
    FieldEqualsMissing,
    /// A tab stands in a field key.
    FieldControl,
    /// The `=` of a field is not followed by a value.
    ValueMissing,
    /// A field value is no number, boolean or string.
    ValueInvalid,
    /// A number does not fit its type: beyond `i64`, beyond `u64`, or infinite as `f64`.
    ValueOutOfRange,
    /// Something other than a comma, a space or the end of the record follows a string.
    ValueTrailing,
    /// The closing quote of a string is missing: the string takes the rest of the input.
    StringUnclosed,
    /// The timestamp is no decimal integer.
    TimestampInvalid,
    /// The timestamp does not fit an `i64`.
    TimestampOutOfRange,
    /// Something follows the timestamp.
    TimestampTrailing,
    /// A name or a string is not UTF-8.
    NotUtf8,
    /// The record is good, but has more tags and fields than the caller gave room for; of
    /// [`split_points`](crate::split_points()) alone.
    TooManyTokens,
}

impl ErrorKind {
    /// Returns the part of the record that is wrong: `measurement`, `tag`, `field`, `value`,
    /// `string`, `timestamp`, `utf8` or, where it is its length, `record`.
    ///
    /// ```
    /// let parts = arc_lp::points(b"pump,=7 rpm=1\npump rpm=x\npump rpm=1 noon").filter_map(Result::err);
    /// assert!(parts.map(|error| error.kind().part()).eq(["tag", "value", "timestamp"]));
    /// ```
    #[must_use]
    pub const fn part(&self) -> &'static str {
        match self {
            Self::MeasurementMissing | Self::MeasurementControl => "measurement",
            Self::TagKeyMissing | Self::TagEqualsMissing | Self::TagValueMissing | Self::TagControl => "tag",
            Self::FieldMissing | Self::FieldKeyMissing | Self::FieldEqualsMissing | Self::FieldControl => "field",
            Self::ValueMissing | Self::ValueInvalid | Self::ValueOutOfRange | Self::ValueTrailing => "value",
            Self::StringUnclosed => "string",
            Self::TimestampInvalid | Self::TimestampOutOfRange | Self::TimestampTrailing => "timestamp",
            Self::NotUtf8 => "utf8",
            Self::TooManyTokens => "record",
        }
    }

    const fn message(self) -> &'static str {
        match self {
            Self::MeasurementMissing => "the measurement is missing",
            Self::MeasurementControl => "a tab or NUL in the measurement",
            Self::TagKeyMissing => "a tag key is missing after a comma",
            Self::TagEqualsMissing => "a tag key is not followed by '='",
            Self::TagValueMissing => "a tag value is missing after '='",
            Self::TagControl => "a tab in a tag key or tag value",
            Self::FieldMissing => "the record has no field",
            Self::FieldKeyMissing => "a field key is missing",
            Self::FieldEqualsMissing => "a field key is not followed by '='",
            Self::FieldControl => "a tab in a field key",
            Self::ValueMissing => "a field value is missing after '='",
            Self::ValueInvalid => "a field value is no number, boolean or quoted string",
            Self::ValueOutOfRange => "a number is out of the range of its type",
            Self::ValueTrailing => "a string is followed by something other than ',' or ' '",
            Self::StringUnclosed => "a string is never closed",
            Self::TimestampInvalid => "the timestamp is no integer",
            Self::TimestampOutOfRange => "the timestamp is out of the range of 64 bits",
            Self::TimestampTrailing => "something follows the timestamp",
            Self::NotUtf8 => "a name or string is not UTF-8",
            Self::TooManyTokens => "the record has more tags and fields than there is room for",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}
