//! How strict a table is about the types of its columns: the setting, and what it says of a column.
//!
//! Owns the patterns of column names. Never looks at a table: which of its columns are of which
//! type is for `ingest` to know.

use arrow::datatypes::DataType;
use serde::{Deserialize, Serialize};

use crate::{
    Error, Result,
    model::{Column, ColumnKind, FileTimeUnit, FinerTimes, texts::texts},
};

/// Longest pattern in bytes; a name has no more.
const MAX_PATTERN_BYTES: usize = 256;

/// What becomes of a value whose type is not that of its column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnConflict {
    /// Its line, row or write is refused: a column has one type for life.
    #[default]
    Reject,
    /// The column's type becomes one that has all of its values as they are: integers become
    /// floats, and whatever that would alter becomes text.
    Widen,
}

texts!(OnConflict, "no way to deal with a conflict", "reject or widen", [Reject = "reject", Widen = "widen"]);

/// What a database or table says about the types of its columns. What it leaves out is for the
/// database to say, and then for [`Options`](crate::Options).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ColumnTypes {
    /// Patterns of names, in which `*` stands for any text. New fields that one of them matches are
    /// text, whatever their values are: numbers with all of their digits, booleans as `true` and
    /// `false`. No pattern at all matches nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string_columns: Option<Vec<String>>,
    /// What becomes of a value whose type is not that of its column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_conflict: Option<OnConflict>,
    /// Unit of the times in data files that are written from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_unit: Option<FileTimeUnit>,
    /// What becomes of a point whose time is finer than that unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finer_times: Option<FinerTimes>,
}

impl ColumnTypes {
    /// Says nothing.
    ///
    /// ```
    /// use arc_core::{ColumnTypes, OnConflict};
    ///
    /// let types = ColumnTypes::new().string_columns(["attr_*"]).on_conflict(OnConflict::Widen);
    /// assert!(!types.is_empty() && ColumnTypes::new().is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the patterns of columns that are text.
    #[must_use]
    pub fn string_columns<S: Into<String>>(mut self, patterns: impl IntoIterator<Item = S>) -> Self {
        self.string_columns = Some(patterns.into_iter().map(Into::into).collect());
        self
    }

    /// Reads patterns with commas between them; none at all of an empty text.
    ///
    /// ```
    /// let types = arc_core::ColumnTypes::new().string_columns(arc_core::ColumnTypes::split_patterns("attr_*, resource_*"));
    /// assert_eq!(types.string_columns.unwrap(), ["attr_*", "resource_*"]);
    /// ```
    pub fn split_patterns(text: &str) -> impl Iterator<Item = &str> {
        text.split(',').map(str::trim).filter(move |pattern| !(pattern.is_empty() && text.trim().is_empty()))
    }

    /// Sets what becomes of a value whose type is not that of its column.
    #[must_use]
    pub fn on_conflict(mut self, on_conflict: OnConflict) -> Self {
        self.on_conflict = Some(on_conflict);
        self
    }

    /// Sets the unit of the times in data files.
    #[must_use]
    pub fn time_unit(mut self, time_unit: FileTimeUnit) -> Self {
        self.time_unit = Some(time_unit);
        self
    }

    /// Sets what becomes of a point whose time is finer than that unit.
    #[must_use]
    pub fn finer_times(mut self, finer_times: FinerTimes) -> Self {
        self.finer_times = Some(finer_times);
        self
    }

    /// Returns whether it leaves everything to others.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns this, with what it leaves out as `other` says it.
    pub(crate) fn or(self, other: &Self) -> Self {
        Self {
            string_columns: self.string_columns.or_else(|| other.string_columns.clone()),
            on_conflict: self.on_conflict.or(other.on_conflict),
            time_unit: self.time_unit.or(other.time_unit),
            finer_times: self.finer_times.or(other.finer_times),
        }
    }

    /// Returns whether values of a new field called `name` are made text.
    pub(crate) fn is_string(&self, name: &str) -> bool {
        self.string_columns.iter().flatten().any(|pattern| matches(pattern, name))
    }

    /// Returns whether it makes all of a column's values text, which are something else in it.
    pub(crate) fn is_string_of_other_type(&self, column: &Column) -> bool {
        column.kind == ColumnKind::Field && column.data_type != DataType::Utf8 && self.is_string(&column.name)
    }

    /// Returns whether it says that times are in another unit than nanoseconds.
    pub(crate) fn has_unit(&self) -> bool {
        self.time_unit.is_some_and(|unit| !unit.is_nanosecond())
    }

    /// Returns whether it says that finer times are not kept.
    pub(crate) fn has_finer_times(&self) -> bool {
        self.finer_times.is_some_and(|finer| finer != FinerTimes::Keep)
    }

    /// Returns the unit that times are rounded to.
    #[cfg(feature = "query")]
    pub(crate) fn rounds_to(&self) -> FileTimeUnit {
        self.time_unit.filter(|_| self.finer_times == Some(FinerTimes::Round)).unwrap_or_default()
    }

    /// Returns whether columns may change their type.
    pub(crate) fn widens(&self) -> bool {
        self.on_conflict == Some(OnConflict::Widen)
    }

    /// Returns whether a field of this type may become one of another.
    #[cfg(any(feature = "query", feature = "import"))]
    pub(crate) fn lets_change(&self, existing: &DataType) -> bool {
        self.widens() && crate::model::may_become(existing, &DataType::Utf8)
    }

    /// Returns whether a field that is there, or its values, may be made another type so that
    /// values of any type fit.
    #[cfg(feature = "query")]
    pub(crate) fn gives_way(&self, name: &str, existing: &DataType) -> bool {
        let is_text = *existing == DataType::Utf8;
        (is_text && (self.widens() || self.is_string(name))) || self.lets_change(existing)
    }

    /// Checks the patterns, as all do that take the setting.
    ///
    /// ```
    /// use arc_core::ColumnTypes;
    ///
    /// assert!(ColumnTypes::new().string_columns(["attr_*", "user_id"]).check().is_ok());
    /// assert!(ColumnTypes::new().string_columns([""]).check().is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) naming the bad one.
    pub fn check(&self) -> Result<()> {
        self.string_columns.iter().flatten().try_for_each(|pattern| {
            let reason = if pattern.is_empty() {
                "it is empty"
            } else if pattern.len() > MAX_PATTERN_BYTES {
                "it is longer than 256 bytes"
            } else if pattern.chars().any(char::is_control) {
                "it has a control character"
            } else {
                return Ok(());
            };
            let pattern: String = pattern.chars().take(64).collect();
            let reason = format!("{pattern:?} is no pattern of column names: {reason}");
            Err(Error::InvalidOption { option: "string_columns", reason })
        })
    }
}

/// Returns whether `name` is what `pattern` says: text as it is, `*` for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    let mut parts = rest.split('*');
    let last = parts.next_back().unwrap_or_default();
    for part in parts {
        // The first place is as good as any later one.
        match name.split_once(part) {
            Some((_, behind)) => name = behind,
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        let cases = [
            ("attr_*", "attr_", true),
            ("attr_*", "attr_a*b", true),
            ("attr_*", "attr", false),
            ("attr_*", "xattr_a", false),
            ("*", "", true),
            ("*", "é", true),
            ("*_id", "user_id", true),
            ("*_id", "_id_", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "a--bb-c", true),
            ("a*b*c", "a--c", false),
            ("a*bc*c", "abc", false),
            ("ab*ba", "aba", false),
            ("**x**", "axb", true),
            ("exact", "exact", true),
            ("exact", "exactly", false),
            ("a?", "ab", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn what_is_left_out_is_for_others_to_say() {
        let table = ColumnTypes::new().string_columns(["a*"]);
        let database = ColumnTypes::new().string_columns(["b*"]).on_conflict(OnConflict::Widen);
        let both = table.or(&database);
        assert!(both.widens() && both.is_string("ax") && !both.is_string("bx"));
        let none = ColumnTypes::new().string_columns([""; 0]).or(&database);
        assert!(!none.is_string("bx"));
        assert!(ColumnTypes::new().is_empty() && !none.is_empty());
    }

    #[test]
    fn bad_settings_are_named() {
        for (pattern, reason) in [("", "it is empty"), ("a\n*", "control character"), (&*"x".repeat(257), "longer")] {
            let error = ColumnTypes::new().string_columns(["ok_*", pattern]).check().unwrap_err().to_string();
            assert!(error.contains("string_columns") && error.contains(reason), "{error}");
        }
        assert!("Widen".parse::<OnConflict>().unwrap_err().contains("\"Widen\""));
        for one in [OnConflict::Reject, OnConflict::Widen] {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
    }
}
