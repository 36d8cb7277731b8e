//! Predicates as SQL text, for people and for queries that count what a delete would take.

use std::fmt;

use super::{Comparison, Literal, Predicate};

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::True => f.write_str("TRUE"),
            Self::Compare { column, comparison, value } => write!(f, "{} {comparison} {value}", Name(column)),
            Self::In { column, values } => {
                write!(f, "{} IN (", Name(column))?;
                list(f, values, ", ", |f, value| write!(f, "{value}"))?;
                f.write_str(")")
            }
            Self::IsNull { column } => write!(f, "{} IS NULL", Name(column)),
            Self::Not(inner) => match inner.as_ref() {
                Self::IsNull { column } => write!(f, "{} IS NOT NULL", Name(column)),
                inner => write!(f, "NOT ({inner})"),
            },
            // What all of nothing and any of nothing say.
            Self::And(all) if all.is_empty() => f.write_str("TRUE"),
            Self::Or(any) if any.is_empty() => f.write_str("FALSE"),
            Self::And(all) => list(f, all, " AND ", operand),
            Self::Or(any) => list(f, any, " OR ", operand),
        }
    }
}

fn operand(f: &mut fmt::Formatter<'_>, predicate: &Predicate) -> fmt::Result {
    match predicate {
        Predicate::And(_) | Predicate::Or(_) => write!(f, "({predicate})"),
        plain => write!(f, "{plain}"),
    }
}

fn list<T>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    between: &str,
    mut show: impl FnMut(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            f.write_str(between)?;
        }
        show(f, item)?;
    }
    Ok(())
}

/// A column as SQL quotes it.
struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.replace('"', "\"\""))
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Unsigned(value) => write!(f, "{value}"),
            Self::Float(value) if value.is_finite() => write!(f, "{value:?}"),
            Self::Float(value) => write!(f, "CAST('{value}' AS DOUBLE)"),
            Self::Boolean(value) => f.write_str(if *value { "TRUE" } else { "FALSE" }),
            Self::Time(time_ns) => write!(f, "to_timestamp_nanos({time_ns})"),
        }
    }
}
