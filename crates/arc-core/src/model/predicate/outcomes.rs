//! What a predicate can come to in rows of which only bounds are known.

use std::cmp::Ordering;

use super::{Comparison, Literal, Predicate, one_zero};

/// Which outcomes are possible among some rows; one that is possible need not occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcomes {
    /// A row may meet the predicate.
    pub(crate) met: bool,
    /// A row may not meet it.
    pub(crate) unmet: bool,
    /// Of a row nothing may be said.
    pub(crate) null: bool,
}

/// What is known of a column of some rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct KnownValues {
    /// A value that no value is below.
    pub(crate) min: Option<Literal>,
    /// A value that no value is above.
    pub(crate) max: Option<Literal>,
    /// Whether all rows have a value.
    pub(crate) no_nulls: bool,
    /// Whether no row has a value.
    pub(crate) all_null: bool,
}

impl Outcomes {
    /// Returns whether every row meets the predicate, for certain.
    pub(crate) fn is_certain(self) -> bool {
        !self.unmet && !self.null
    }
}

impl Predicate {
    /// Returns the possible outcomes, given what is known of each column.
    pub(crate) fn outcomes(&self, known: &dyn Fn(&str) -> KnownValues) -> Outcomes {
        match self {
            Self::True => Outcomes { met: true, unmet: false, null: false },
            Self::Compare { column, comparison, value } => of_comparison(&known(column), *comparison, value),
            Self::In { column, values } => {
                let known = known(column);
                let each = values.iter().map(|value| of_comparison(&known, Comparison::Equal, value));
                let none = Outcomes { met: false, unmet: true, null: !known.no_nulls };
                each.reduce(any).unwrap_or(none)
            }
            Self::IsNull { column } => {
                let known = known(column);
                Outcomes { met: !known.no_nulls, unmet: !known.all_null, null: false }
            }
            Self::Not(inner) => {
                let Outcomes { met, unmet, null } = inner.outcomes(known);
                Outcomes { met: unmet, unmet: met, null }
            }
            Self::And(parts) => {
                let certain = Outcomes { met: true, unmet: false, null: false };
                parts.iter().map(|part| part.outcomes(known)).fold(certain, all)
            }
            Self::Or(parts) => {
                let never = Outcomes { met: false, unmet: true, null: false };
                parts.iter().map(|part| part.outcomes(known)).fold(never, any)
            }
        }
    }
}

fn all(a: Outcomes, b: Outcomes) -> Outcomes {
    Outcomes { met: a.met && b.met, unmet: a.unmet || b.unmet, null: a.null || b.null }
}

fn any(a: Outcomes, b: Outcomes) -> Outcomes {
    Outcomes { met: a.met || b.met, unmet: a.unmet && b.unmet, null: a.null || b.null }
}

fn of_comparison(known: &KnownValues, comparison: Comparison, value: &Literal) -> Outcomes {
    if known.all_null {
        return Outcomes { met: false, unmet: false, null: true };
    }
    let min = known.min.as_ref().and_then(|min| order(min, value));
    let max = known.max.as_ref().and_then(|max| order(max, value));
    // Where the values can lie against the one that they are compared with.
    let possible = |ordering: Ordering| min.is_none_or(|min| min <= ordering) && max.is_none_or(|max| max >= ordering);
    let of = |wanted: bool| {
        let all = [Ordering::Less, Ordering::Equal, Ordering::Greater];
        all.into_iter().any(|ordering| comparison.holds(ordering) == wanted && possible(ordering))
    };
    Outcomes { met: of(true), unmet: of(false), null: !known.no_nulls }
}

/// Returns how two values of one type are ordered.
fn order(a: &Literal, b: &Literal) -> Option<Ordering> {
    match (a, b) {
        (Literal::Text(a), Literal::Text(b)) => Some(a.cmp(b)),
        (Literal::Integer(a) | Literal::Time(a), Literal::Integer(b) | Literal::Time(b)) => Some(a.cmp(b)),
        (Literal::Unsigned(a), Literal::Unsigned(b)) => Some(a.cmp(b)),
        (Literal::Float(a), Literal::Float(b)) => Some(one_zero(*a).total_cmp(&one_zero(*b))),
        (Literal::Boolean(a), Literal::Boolean(b)) => Some(a.cmp(b)),
        _ => None,
    }
}
