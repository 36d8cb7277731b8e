//! The two points on which one may want to read as another server does.
//!
//! Owns the switches and their meaning; every face takes them. What they change is only looked at
//! where a backslash or a byte that is not UTF-8 was met, so other input pays nothing for the
//! choice.

use crate::text::Escapes;

/// How to read what servers read in different ways.
///
/// ```
/// use arc_lp::{Backslash, Dialect};
///
/// # fn main() -> Result<(), arc_lp::Error> {
/// let input = br"disk,path=\\server\share free=1";
/// let paths = |dialect| arc_lp::points_with(input, dialect).map(|point| Ok(point?.tags().next().map(|tag| tag.1.to_string())));
/// let default: Result<Vec<_>, arc_lp::Error> = paths(Dialect::new()).collect();
/// assert_eq!(default?, [Some(r"\server\share".to_owned())]);
/// let keep: Result<Vec<_>, arc_lp::Error> = paths(Dialect::new().backslash(Backslash::Keep)).collect();
/// assert_eq!(keep?, [Some(r"\\server\share".to_owned())]);
/// # Ok(())
/// # }
/// ```
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Dialect {
    backslash: Backslash,
    utf8: Utf8,
}

impl Dialect {
    /// The dialect of the crate's documentation.
    ///
    /// ```
    /// use arc_lp::{Backslash, Dialect, Utf8};
    ///
    /// assert_eq!(Dialect::new(), Dialect::new().backslash(Backslash::Escape).utf8(Utf8::Strict));
    /// ```
    pub const fn new() -> Self {
        Self { backslash: Backslash::Escape, utf8: Utf8::Strict }
    }

    /// Sets what two backslashes in a name are.
    pub const fn backslash(mut self, backslash: Backslash) -> Self {
        self.backslash = backslash;
        self
    }

    /// Sets what happens to text that is not UTF-8.
    ///
    /// ```
    /// use arc_lp::{Dialect, Utf8};
    ///
    /// for point in arc_lp::points_with(b"caf\xe9 cups=3i", Dialect::new().utf8(Utf8::Lossy)) {
    ///     assert_eq!(point?.measurement().to_string(), "caf\u{fffd}");
    /// }
    /// # Ok::<(), arc_lp::Error>(())
    /// ```
    pub const fn utf8(mut self, utf8: Utf8) -> Self {
        self.utf8 = utf8;
        self
    }

    #[inline(always)]
    pub(crate) const fn is_lossy(self) -> bool {
        matches!(self.utf8, Utf8::Lossy)
    }

    #[inline(always)]
    pub(crate) const fn keeps_backslashes(self) -> bool {
        matches!(self.backslash, Backslash::Keep)
    }

    /// What the escapes of a part are in this dialect, given those in the default one.
    #[inline(always)]
    pub(crate) const fn escapes(self, default: Escapes) -> Escapes {
        match (self.backslash, default) {
            (Backslash::Keep, Escapes::Name) => Escapes::KeepingName,
            (Backslash::Keep, Escapes::Measurement) => Escapes::KeepingMeasurement,
            _ => default,
        }
    }
}

/// What two backslashes in a measurement, a tag or a field key are. In strings they are one in
/// every dialect.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backslash {
    /// One backslash, as InfluxDB 3 has it: every name can be written.
    #[default]
    Escape,
    /// Two, as InfluxDB 2 and 1.8 have it: a backslash makes `,`, `=` and space plain, never
    /// another one. So `\\,` is a backslash and a comma that is data, a name that is followed by a
    /// separator cannot end in a backslash (`t=C:\\ f=1` is a tag that goes on after the space),
    /// and what [`LineWriter`](crate::LineWriter) writes is not what is read.
    Keep,
}

/// What happens to names and strings that are not UTF-8.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Utf8 {
    /// The record is bad.
    #[default]
    Strict,
    /// They are taken; [`Text`](crate::Text) shows U+FFFD in place of what is wrong.
    Lossy,
}
