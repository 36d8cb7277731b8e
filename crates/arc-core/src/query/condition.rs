//! Conditions of deletes: from SQL's expressions to predicates.
//!
//! Owns which conditions can be said, and what is a value. Never looks at a schema: whether the
//! columns are there, and have such values, is seen when the predicate is applied.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value, ValueWithSpan};

use super::{
    change::{Change, parse},
    statement::{Statement, refuse},
};
use crate::{Comparison, Literal, Predicate, Result};

impl Predicate {
    /// Reads a predicate as it stands after `WHERE`.
    ///
    /// Knows comparisons of a column with a value, `IN`, `BETWEEN`, `IS NULL`, `AND`, `OR`, `NOT`,
    /// `TRUE` and `FALSE`. Times are texts such as `'2026-01-31T12:00:00Z'` or nanoseconds since
    /// the epoch.
    ///
    /// ```
    /// let old = arc_core::Predicate::from_sql("time < '2026-01-01' AND host IN ('a', 'b')")?;
    /// assert_eq!(old.to_string(), "\"time\" < '2026-01-01' AND \"host\" IN ('a', 'b')");
    /// # Ok::<(), arc_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) naming what is not known.
    pub fn from_sql(condition: &str) -> Result<Self> {
        match parse(&Statement::parse(&format!("DELETE FROM t WHERE {condition}"))?)? {
            Change::Delete { predicate, .. } => Ok(predicate),
            _ => refuse("a condition changes nothing"),
        }
    }
}

pub(super) fn condition(expr: &Expr) -> Result<Predicate> {
    match expr {
        Expr::Nested(inner) => condition(inner),
        Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } => {
            let mut parts = Vec::new();
            flatten(expr, op, &mut parts)?;
            Ok(if *op == BinaryOperator::And { Predicate::And(parts) } else { Predicate::Or(parts) })
        }
        Expr::BinaryOp { left, op, right } => comparison(left, op, right),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => Ok(not(condition(expr)?)),
        Expr::IsNull(inner) => Ok(Predicate::IsNull { column: column(inner)? }),
        Expr::IsNotNull(inner) => Ok(not(Predicate::IsNull { column: column(inner)? })),
        Expr::InList { expr, list, negated } => {
            let values = list.iter().map(value).collect::<Result<_>>()?;
            let within = Predicate::In { column: column(expr)?, values };
            Ok(if *negated { not(within) } else { within })
        }
        Expr::Between { expr, negated, low, high } => {
            let column = column(expr)?;
            let within = Predicate::And(vec![
                Predicate::compare(column.clone(), Comparison::GreaterOrEqual, value(low)?),
                Predicate::compare(column, Comparison::LessOrEqual, value(high)?),
            ]);
            Ok(if *negated { not(within) } else { within })
        }
        Expr::Identifier(name) => Ok(Predicate::compare(name.value.clone(), Comparison::Equal, Literal::Boolean(true))),
        Expr::Value(_) => match value(expr)? {
            Literal::Boolean(truth) => Ok(constant(truth)),
            Literal::Integer(number) => Ok(constant(number != 0)),
            _ => unknown(expr),
        },
        _ => unknown(expr),
    }
}

/// Takes the conditions of a chain of `AND` or of `OR` in order, so that a long one makes no deep
/// tree.
fn flatten(expr: &Expr, operator: &BinaryOperator, parts: &mut Vec<Predicate>) -> Result<()> {
    match expr {
        Expr::BinaryOp { left, op, right } if op == operator => {
            flatten(left, operator, parts)?;
            flatten(right, operator, parts)
        }
        other => {
            parts.push(condition(other)?);
            Ok(())
        }
    }
}

fn comparison(left: &Expr, operator: &BinaryOperator, right: &Expr) -> Result<Predicate> {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let (forward, backward) = match operator {
        BinaryOperator::Eq => (Equal, Equal),
        BinaryOperator::NotEq => (NotEqual, NotEqual),
        BinaryOperator::Lt => (Less, Greater),
        BinaryOperator::LtEq => (LessOrEqual, GreaterOrEqual),
        BinaryOperator::Gt => (Greater, Less),
        BinaryOperator::GtEq => (GreaterOrEqual, LessOrEqual),
        other => return refuse(format!("{other} is not known in the condition of a delete")),
    };
    match (column(left), column(right)) {
        (Ok(column), Err(_)) => Ok(Predicate::compare(column, forward, value(right)?)),
        (Err(_), Ok(column)) => Ok(Predicate::compare(column, backward, value(left)?)),
        (Ok(_), Ok(_)) => refuse("a delete cannot compare two columns"),
        (Err(_), Err(_)) => match (value(left)?, value(right)?) {
            // What is always true or never, such as 1 = 1.
            (Literal::Integer(left), Literal::Integer(right)) => Ok(constant(forward.holds(left.cmp(&right)))),
            (Literal::Text(left), Literal::Text(right)) => Ok(constant(forward.holds(left.cmp(&right)))),
            _ => refuse(format!("{left} {operator} {right} compares no column")),
        },
    }
}

fn not(predicate: Predicate) -> Predicate {
    Predicate::Not(Box::new(predicate))
}

fn constant(truth: bool) -> Predicate {
    if truth { Predicate::True } else { not(Predicate::True) }
}

fn column(expr: &Expr) -> Result<String> {
    match expr {
        Expr::Identifier(name) => Ok(name.value.clone()),
        Expr::Nested(inner) => column(inner),
        other => refuse(format!("{other} is not a column")),
    }
}

pub(super) fn value(expr: &Expr) -> Result<Literal> {
    let plain = |value: &Value| match value {
        Value::Number(digits, _) => number(digits),
        Value::SingleQuotedString(text) => Ok(Literal::Text(text.clone())),
        Value::Boolean(truth) => Ok(Literal::Boolean(*truth)),
        Value::Null => refuse("nothing compares with NULL; IS NULL finds rows without a value"),
        other => refuse(format!("{other} is not a value that a delete can compare with")),
    };
    match expr {
        Expr::Nested(inner) => value(inner),
        Expr::Value(ValueWithSpan { value, .. }) => plain(value),
        // TIMESTAMP '2026-01-31': what it is for shows in the column.
        Expr::TypedString(typed) => plain(&typed.value.value),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => number(&format!("-{digits}")),
            other => refuse(format!("-{other} is not a number")),
        },
        other => unknown(other),
    }
}

fn number(digits: &str) -> Result<Literal> {
    if let Ok(integer) = digits.parse() {
        return Ok(Literal::Integer(integer));
    }
    if let Ok(unsigned) = digits.parse() {
        return Ok(Literal::Unsigned(unsigned));
    }
    match digits.parse::<f64>() {
        Ok(float) if float.is_finite() => Ok(Literal::Float(float)),
        _ => refuse(format!("{digits} is not a number that a column holds")),
    }
}

fn unknown<T>(expr: &Expr) -> Result<T> {
    refuse(format!(
        "{expr} is not known in the condition of a delete: it takes comparisons of a column with a value, IN, BETWEEN, \
         IS NULL, AND, OR and NOT"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_and_what_is_not_known_is_named() {
        let cases = [
            ("TRUE", "TRUE"),
            ("1", "TRUE"),
            ("1=1", "TRUE"),
            ("1 > 2", "NOT (TRUE)"),
            ("host = 'a'", "\"host\" = 'a'"),
            ("5 < n", "\"n\" > 5"),
            ("x >= -1.5", "\"x\" >= -1.5"),
            ("u = 18446744073709551615", "\"u\" = 18446744073709551615"),
            ("flag", "\"flag\" = TRUE"),
            ("time < TIMESTAMP '2026-01-31'", "\"time\" < '2026-01-31'"),
            ("\"two words\" IS NOT NULL", "\"two words\" IS NOT NULL"),
            ("a = 1 AND b = 2 AND (c = 3 OR NOT d = 4)", "\"a\" = 1 AND \"b\" = 2 AND (\"c\" = 3 OR NOT (\"d\" = 4))"),
            ("n BETWEEN 1 AND 3", "\"n\" >= 1 AND \"n\" <= 3"),
            ("n NOT IN (1, 2)", "NOT (\"n\" IN (1, 2))"),
        ];
        for (sql, expected) in cases {
            let predicate = Predicate::from_sql(sql).unwrap();
            assert_eq!(predicate.to_string(), expected, "{sql}");
        }
        let refused = [
            ("", "Expected"),
            ("a = 1; DROP TABLE t", "more than one"),
            ("a = NULL", "IS NULL"),
            ("a < 1e400", "1e400 is not a number"),
            ("a = b", "two columns"),
            ("lower(a) = 'x'", "lower(a)"),
            ("a LIKE 'x%'", "LIKE"),
            ("a + 1 = 2", "a + 1"),
            ("a IN (SELECT 1)", "SELECT"),
            ("a = 1 RETURNING a", "nothing else"),
            ("a = 1 LIMIT 1", "nothing else"),
        ];
        for (sql, expected) in refused {
            let error = Predicate::from_sql(sql).unwrap_err().to_string();
            assert!(error.contains(expected), "{sql}: {error}");
        }
        let long = vec!["a = 1"; 900].join(" OR ");
        assert!(matches!(Predicate::from_sql(&long).unwrap(), Predicate::Or(parts) if parts.len() == 900));
    }
}
