//! Statements that change data: from text to what they ask the engine to do.
//!
//! Owns which of SQL's deletes, drops, inserts and creates can be said, and the way from its expressions to predicates. Never runs anything:
//! what queries may do is decided elsewhere and does not include this.

use datafusion::sql::sqlparser::{
    ast::{
        self, BinaryOperator, Expr, FromTable, ObjectName, ObjectType, TableFactor, TableWithJoins, UnaryOperator,
        Value, ValueWithSpan,
    },
    dialect::GenericDialect,
    parser::{Parser, ParserError},
};

use super::{
    create,
    insert::{self, Rows},
    statement::{self, refuse},
};
use crate::{ColumnTypes, Comparison, Error, Literal, Predicate, Result, catalog::Column};

/// Stack for the parsed tree, which can be as deep as a statement has operators. Only pages that are touched take memory.
const STACK_BYTES: usize = 64 << 20;

/// What a statement asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    /// `DELETE FROM table [WHERE condition]`, in the database named or else the default one.
    Delete { database: Option<String>, table: String, predicate: Predicate },
    /// `DROP TABLE [IF EXISTS] table`, in the database named or else the default one.
    DropTable { database: Option<String>, table: String, if_exists: bool },
    /// `DROP DATABASE [IF EXISTS] database`.
    DropDatabase { database: String, if_exists: bool },
    /// `INSERT INTO table … VALUES …` with values as they stand, in the database named or else the default one.
    Insert { database: Option<String>, table: String, rows: Rows },
    /// `INSERT INTO table … SELECT …`, likewise: the columns named, all where there are none, and the query.
    InsertQuery { database: Option<String>, table: String, columns: Vec<String>, query: String },
    /// `CREATE DATABASE [IF NOT EXISTS] database`.
    CreateDatabase { database: String, if_not_exists: bool },
    /// `CREATE TABLE [IF NOT EXISTS] table (…)`, in the database named or else the default one.
    CreateTable {
        database: Option<String>,
        table: String,
        keyed: bool,
        columns: Vec<Column>,
        types: ColumnTypes,
        if_not_exists: bool,
    },
}

/// Returns whether `sql` begins as a statement that drops something: one for [`Engine::execute`](crate::Engine::execute)
/// and not for [`Engine::sql`](crate::Engine::sql).
///
/// ```
/// assert!(arc_core::is_drop("/* no longer needed */ drop table cpu"));
/// assert!(!arc_core::is_drop("SELECT 'DROP TABLE cpu'"));
/// ```
#[must_use]
pub fn is_drop(sql: &str) -> bool {
    verb(sql).eq_ignore_ascii_case("drop")
}

/// Returns whether `sql` begins as a statement that adds something: rows, a table or a database: one for
/// [`Engine::execute`](crate::Engine::execute) that takes nothing away.
///
/// ```
/// assert!(arc_core::is_write("insert into cpu (time, host) values (1, 'a')"));
/// assert!(!arc_core::is_write("DELETE FROM cpu"));
/// ```
#[must_use]
pub fn is_write(sql: &str) -> bool {
    is_insert(sql) || verb(sql).eq_ignore_ascii_case("create")
}

/// Returns whether `sql` begins as a statement that writes rows: one for [`Engine::run`](crate::Engine::run), which says how
/// many.
///
/// ```
/// assert!(arc_core::is_insert("INSERT INTO cpu SELECT * FROM cpu_of_yesterday"));
/// ```
#[must_use]
pub fn is_insert(sql: &str) -> bool {
    verb(sql).eq_ignore_ascii_case("insert")
}

/// Returns whether `sql` begins as a statement for [`Engine::execute`](crate::Engine::execute): one that deletes, drops
/// or writes.
///
/// ```
/// assert!(arc_core::is_change("delete from cpu where host = 'a'"));
/// assert!(!arc_core::is_change("SELECT * FROM cpu"));
/// ```
#[must_use]
pub fn is_change(sql: &str) -> bool {
    verb(sql).eq_ignore_ascii_case("delete") || is_drop(sql) || is_write(sql)
}

/// Returns the first word of a statement.
fn verb(sql: &str) -> &str {
    let mut rest = sql.trim_start();
    loop {
        let behind = match rest.get(..2) {
            Some("--") => rest.split_once('\n'),
            Some("/*") => rest.split_once("*/"),
            _ => break,
        };
        rest = behind.map_or("", |(_, behind)| behind.trim_start());
    }
    rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default()
}

/// Parses one statement that changes data.
pub(crate) fn parse(sql: &str) -> Result<Change> {
    let parse = || match insert::source(sql) {
        Some(source) => insert::of_source(sql, source),
        None => change(one(sql)?),
    };
    // Also dropped there.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("arc-plan".to_owned()).stack_size(STACK_BYTES);
        let parsing = thread.spawn_scoped(scope, parse).map_err(|_| super::error::busy("no thread for a statement"))?;
        parsing.join().unwrap_or_else(|panic| Err(super::error::panicked(&*panic)))
    })
}

impl Predicate {
    /// Reads a predicate as it stands behind `WHERE`.
    ///
    /// Knows comparisons of a column with a value, `IN`, `BETWEEN`, `IS NULL`, `AND`, `OR`, `NOT`, `TRUE` and `FALSE`. Times
    /// are texts such as `'2026-01-31T12:00:00Z'` or nanoseconds since the epoch.
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
        match parse(&format!("DELETE FROM t WHERE {condition}"))? {
            Change::Delete { predicate, .. } => Ok(predicate),
            _ => refuse("a condition changes nothing"),
        }
    }
}

pub(super) fn one(sql: &str) -> Result<ast::Statement> {
    statement::check_size(sql)?;
    let invalid = |e: ParserError| Error::Sql { reason: e.to_string() };
    let parser = Parser::new(&GenericDialect {}).with_recursion_limit(statement::MAX_NESTING);
    let mut statements = parser.try_with_sql(sql).map_err(invalid)?.parse_statements().map_err(invalid)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(statement), true) => Ok(statement),
        (Some(_), false) => refuse("more than one statement"),
        (None, _) => refuse("the statement is empty"),
    }
}

fn change(statement: ast::Statement) -> Result<Change> {
    match statement {
        ast::Statement::Delete(statement) => delete(&statement),
        ast::Statement::Drop { .. } => drop_of(&statement),
        ast::Statement::Insert(_) => refuse("INSERT INTO takes a table, columns, and VALUES or a query"),
        ast::Statement::CreateDatabase { .. } => create::database(&statement),
        ast::Statement::CreateTable(statement) => create::table(&statement),
        other => {
            let verb = other.to_string().split_whitespace().next().unwrap_or_default().to_uppercase();
            refuse(format!(
                "{verb} is not a statement that changes data here; DELETE, DROP TABLE, DROP DATABASE, CREATE TABLE, \
                 CREATE DATABASE and INSERT are"
            ))
        }
    }
}

fn drop_of(statement: &ast::Statement) -> Result<Change> {
    let ast::Statement::Drop {
        object_type: object_type @ (ObjectType::Table | ObjectType::Database),
        if_exists,
        names,
        cascade: false,
        restrict: false,
        purge: false,
        temporary: false,
        table: None,
    } = statement
    else {
        return refuse("DROP takes TABLE or DATABASE, IF EXISTS and a name, and nothing else");
    };
    let if_exists = *if_exists;
    let [name] = names.as_slice() else { return refuse("DROP takes one name at a time") };
    if *object_type == ObjectType::Table {
        let (database, table) = named(name)?;
        return Ok(Change::DropTable { database, table, if_exists });
    }
    match named(name)? {
        (None, database) => Ok(Change::DropDatabase { database, if_exists }),
        (Some(_), _) => refuse(format!("{name} is no database; quote a name that has a dot")),
    }
}

fn delete(delete: &ast::Delete) -> Result<Change> {
    let is_plain = delete.tables.is_empty()
        && delete.using.is_none()
        && delete.returning.is_none()
        && delete.output.is_none()
        && delete.order_by.is_empty()
        && delete.limit.is_none();
    if !is_plain {
        return refuse("DELETE takes FROM a table and WHERE, and nothing else");
    }
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    let (database, table) = match from.as_slice() {
        [TableWithJoins { relation: TableFactor::Table { name, alias: None, args: None, .. }, joins }]
            if joins.is_empty() =>
        {
            named(name)?
        }
        _ => return refuse("DELETE takes one table, without another name for it"),
    };
    let predicate = delete.selection.as_ref().map_or(Ok(Predicate::True), condition)?;
    Ok(Change::Delete { database, table, predicate })
}

pub(super) fn named(name: &ObjectName) -> Result<(Option<String>, String)> {
    let parts: Option<Vec<String>> =
        name.0.iter().map(|part| part.as_ident().map(|ident| ident.value.clone())).collect();
    match parts.as_deref() {
        Some([table]) => Ok((None, table.clone())),
        Some([database, table]) => Ok((Some(database.clone()), table.clone())),
        _ => refuse(format!("{name} is no table; expected table or database.table")),
    }
}

fn condition(expr: &Expr) -> Result<Predicate> {
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

/// Takes the conditions of a chain of `AND` or of `OR` in order, so that a long one makes no deep tree.
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
    digits.parse().map(Literal::Float).or_else(|_| refuse(format!("{digits} is not a number")))
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

    #[test]
    fn a_statement_names_one_table() {
        let delete = |sql: &str| match parse(sql).unwrap() {
            Change::Delete { database, table, predicate } => (database, table, predicate.to_string()),
            other => panic!("{other:?}"),
        };
        assert_eq!(delete("DELETE FROM cpu"), (None, "cpu".into(), "TRUE".into()));
        let expected = (Some("My db".into()), "CPU".into(), "\"h\" = 'a'".into());
        assert_eq!(delete("delete from \"My db\".CPU where h = 'a';"), expected);
        for sql in ["SELECT 1", "DELETE FROM a.b.c", "DELETE FROM a AS b", "DELETE FROM a, b", ""] {
            assert!(matches!(parse(sql), Err(Error::Sql { .. })), "{sql}");
        }
    }

    #[test]
    fn a_drop_names_one_table_or_database() {
        let table = |database: Option<&str>, table: &str, if_exists| Change::DropTable {
            database: database.map(str::to_owned),
            table: table.into(),
            if_exists,
        };
        let database = |database: &str, if_exists| Change::DropDatabase { database: database.into(), if_exists };
        let cases = [
            ("DROP TABLE cpu", table(None, "cpu", false)),
            ("-- gone\n drop table if exists plant.\"CPU load\";", table(Some("plant"), "CPU load", true)),
            ("DROP DATABASE plant", database("plant", false)),
            ("/* a */ /* b */ DROP DATABASE IF EXISTS \"a.b\"", database("a.b", true)),
        ];
        for (sql, expected) in cases {
            assert!(is_drop(sql), "{sql}");
            assert_eq!(parse(sql).unwrap(), expected, "{sql}");
        }
        let refused = [
            "DROP",
            "DROP TABLE",
            "DROP TABLE a, b",
            "DROP TABLE a CASCADE",
            "DROP TABLE a.b.c",
            "DROP TABLE a; DROP TABLE b",
            "DROP DATABASE a.b",
            "DROP DATABASE a RESTRICT",
            "DROP VIEW a",
            "DROP SCHEMA a",
            "DROP FUNCTION a",
        ];
        for sql in refused {
            assert!(is_drop(sql) && matches!(parse(sql), Err(Error::Sql { .. })), "{sql}");
        }
        for sql in
            ["", "SELECT 1", "-- DROP TABLE a", "/* DROP TABLE a", "DROPS", "DELETE FROM a", "\"DROP\" TABLE a", "/"]
        {
            assert!(!is_drop(sql), "{sql}");
        }
    }
}
