//! Which conditions the newest row of a key decides for all rows of the key.

use datafusion::{
    common::ScalarValue,
    logical_expr::{Expr, Operator, expr::BinaryExpr},
};

use crate::model::TIME_COLUMN;

/// The conditions of a statement, sorted out.
#[derive(Debug, Default)]
pub(super) struct SortedConditions {
    /// Those on the columns of the key.
    pub(super) on_key: Vec<Expr>,
    /// Those that ask for newer rows.
    pub(super) newer: Vec<Expr>,
    /// All others.
    pub(super) others: Vec<Expr>,
    /// Rows before this time meet all of `others`, where that is known.
    before: Option<i64>,
}

impl SortedConditions {
    pub(super) fn new(filters: &[Expr], is_key: impl Fn(&str) -> bool) -> Self {
        let mut sorted = Self::default();
        let mut all_older = true;
        let mut before = i64::MAX;
        for filter in filters {
            let columns = filter.column_refs();
            if !columns.is_empty() && columns.iter().all(|column| is_key(&column.name)) {
                sorted.on_key.push(filter.clone());
                continue;
            }
            match bound(filter) {
                Some(TimeBound::Newer) => sorted.newer.push(filter.clone()),
                Some(TimeBound::Before(time)) => {
                    before = before.min(time);
                    sorted.others.push(filter.clone());
                }
                None => {
                    all_older = false;
                    sorted.others.push(filter.clone());
                }
            }
        }
        sorted.before = all_older.then_some(before);
        sorted
    }

    /// Returns whether all rows up to this time meet the conditions but those on keys and for newer
    /// rows.
    pub(super) fn others_hold_up_to(&self, max_time: i64) -> bool {
        self.others.is_empty() || self.before.is_some_and(|before| max_time < before)
    }
}

/// What a condition says about the time alone.
enum TimeBound {
    /// It holds for all rows that are newer than one for which it holds.
    Newer,
    /// It holds for all rows before this time.
    Before(i64),
}

fn bound(filter: &Expr) -> Option<TimeBound> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = filter else { return None };
    let (op, time) = match (left.as_ref(), right.as_ref()) {
        (Expr::Column(column), Expr::Literal(value, _)) if column.name == TIME_COLUMN => (*op, value),
        (Expr::Literal(value, _), Expr::Column(column)) if column.name == TIME_COLUMN => (op.swap()?, value),
        _ => return None,
    };
    let ScalarValue::TimestampNanosecond(Some(time), _) = time else { return None };
    match op {
        Operator::Gt | Operator::GtEq => Some(TimeBound::Newer),
        Operator::Lt | Operator::LtEq => Some(TimeBound::Before(*time)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::{
        logical_expr::lit,
        prelude::{col, random},
    };

    use super::*;

    #[test]
    fn conditions_are_told_apart() {
        let at = |time| lit(ScalarValue::TimestampNanosecond(Some(time), Some("UTC".into())));
        let cases = [
            (vec![col("host").eq(lit("a"))], [1, 0, 0], Some(i64::MAX)),
            (vec![col("time").gt(at(5)), at(9).lt_eq(col("time"))], [0, 2, 0], Some(i64::MAX)),
            (vec![col("time").lt(at(5)), at(9).gt_eq(col("time"))], [0, 0, 2], Some(5)),
            (vec![col("time").lt(at(5)), col("x").gt(lit(1))], [0, 0, 2], None),
            (vec![col("time").eq(at(5))], [0, 0, 1], None),
            (vec![col("host").eq(col("rack"))], [0, 0, 1], None),
            (vec![random().gt(lit(0.5))], [0, 0, 1], None),
            (vec![], [0, 0, 0], Some(i64::MAX)),
        ];
        for (filters, counts, before) in cases {
            let sorted = SortedConditions::new(&filters, |name| name == "host");
            let found = [sorted.on_key.len(), sorted.newer.len(), sorted.others.len()];
            assert_eq!((found, sorted.before), (counts, before), "{filters:?}");
        }
    }

    #[test]
    fn conditions_hold_up_to_the_time_that_they_ask_for() {
        let before = |time| vec![col("time").lt(lit(ScalarValue::TimestampNanosecond(Some(time), None)))];
        for (filters, max_time, expected) in [
            (vec![], i64::MAX, true),
            (before(5), 4, true),
            (before(5), 5, false),
            (vec![col("x").is_null()], 1, false),
        ] {
            assert_eq!(SortedConditions::new(&filters, |_| false).others_hold_up_to(max_time), expected, "{filters:?}");
        }
    }
}
