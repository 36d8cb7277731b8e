//! Which rows a delete is about: conditions on the columns of one table.
//!
//! Owns what can be said, how it is checked against a table's schema, and how it is stored
//! (docs/format.md, "Predicate"). Never reads SQL: `query` makes predicates from statements, and
//! filters of scans from predicates. Applied to rows by `compaction` and to buffers by `registry`.

mod bind;
mod evaluate;
mod outcomes;
mod show;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub(crate) use bind::bind;
#[cfg(feature = "query")]
pub(crate) use bind::fit;
pub(crate) use evaluate::{left, without};
pub(crate) use outcomes::{KnownValues, Outcomes};

/// A condition that a row meets, does not meet, or of which nothing can be said because a value is
/// null: SQL's logic.
///
/// ```
/// use arc_core::{Comparison, Literal, Predicate};
///
/// let old = Predicate::compare("time", Comparison::Less, Literal::Time(1_700_000_000_000_000_000));
/// let of_host = Predicate::compare("host", Comparison::Equal, "web-1");
/// assert_eq!(of_host.to_string(), "\"host\" = 'web-1'");
/// let both = Predicate::And(vec![old, of_host]);
/// # let _ = both;
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Predicate {
    /// Every row.
    True,
    /// Rows whose value compares like this; null where the value is null.
    Compare {
        /// Column.
        column: String,
        /// How.
        comparison: Comparison,
        /// With what.
        value: Literal,
    },
    /// Rows whose value is one of these; null where the value is null.
    In {
        /// Column.
        column: String,
        /// The values.
        values: Vec<Literal>,
    },
    /// Rows that have no value in a column.
    IsNull {
        /// Column.
        column: String,
    },
    /// Rows that do not meet a condition; null where that is null.
    Not(Box<Predicate>),
    /// Rows that meet all of these.
    And(Vec<Predicate>),
    /// Rows that meet any of these.
    Or(Vec<Predicate>),
}

/// How two values compare: floats as in SQL here, where both zeros are equal, and a NaN is equal to
/// itself and above all numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A value to compare with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Literal {
    /// Text, for tags and text fields.
    Text(String),
    /// A signed integer.
    Integer(i64),
    /// An unsigned integer.
    Unsigned(u64),
    /// A float.
    Float(f64),
    /// A boolean.
    Boolean(bool),
    /// Nanoseconds since the epoch.
    Time(i64),
}

impl From<&str> for Literal {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Predicate {
    /// Compares a column with a value.
    ///
    /// ```
    /// use arc_core::{Comparison, Literal, Predicate};
    ///
    /// let hot = Predicate::compare("degrees", Comparison::Greater, Literal::Float(90.0));
    /// assert_eq!(hot.to_string(), "\"degrees\" > 90.0");
    /// ```
    pub fn compare(column: impl Into<String>, comparison: Comparison, value: impl Into<Literal>) -> Self {
        Self::Compare { column: column.into(), comparison, value: value.into() }
    }

    /// Returns the columns that it looks at, in order of mention, with repetitions.
    pub(crate) fn columns(&self) -> Vec<&str> {
        let mut columns = Vec::new();
        let mut left = vec![self];
        while let Some(predicate) = left.pop() {
            match predicate {
                Self::True => {}
                Self::Compare { column, .. } | Self::In { column, .. } | Self::IsNull { column } => {
                    columns.push(column.as_str());
                }
                Self::Not(inner) => left.push(inner),
                Self::And(all) | Self::Or(all) => left.extend(all.iter().rev()),
            }
        }
        columns
    }
}

/// Returns 0.0 for either zero.
fn one_zero(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value }
}

impl Comparison {
    /// Returns whether the comparison holds where the left side is ordered so against the right.
    pub(crate) fn holds(self, ordering: std::cmp::Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }
}
