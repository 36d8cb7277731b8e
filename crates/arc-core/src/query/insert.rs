//! `INSERT INTO …`: from the statement to what they ask the engine to do.
//!
//! An `INSERT` whose rows have to be computed is cut in two: the query is left as a statement of
//! its own.

use arrow::{compute::kernels::cast_utils::Parser as _, datatypes::Date32Type};
use datafusion::sql::sqlparser::{
    ast::{self, DataType, Expr, SetExpr, TableObject, TypedString, Value, ValueWithSpan},
    keywords::Keyword,
    parser::Parser,
    tokenizer::{Token, TokenWithSpan},
};

use super::{
    change::{self, Change, named},
    condition::value,
    parameters,
    statement::{self, Statement, StatementKind, refuse},
};
use crate::{Error, Literal, Result, time_of_text};

/// Rows to insert: the columns named, all where there are none, and their values, `None` for
/// `NULL`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct InsertRows {
    pub(crate) columns: Vec<String>,
    pub(crate) values: Vec<Vec<Option<Literal>>>,
}

/// Where the rows of an `INSERT` are said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InsertSource {
    /// The token of the statement that they begin with.
    token: usize,
    is_values: bool,
}

/// Finds the rows of a statement, if it is an `INSERT` that has some.
pub(super) fn source(statement: &Statement) -> Option<InsertSource> {
    if statement.kind() != StatementKind::Insert {
        return None;
    }
    let words = statement.tokens().iter().enumerate();
    let words = words.filter(|(_, token)| !matches!(token.token, Token::Whitespace(_))).skip(1);
    let mut depth = 0_usize;
    let mut opening = None;
    for (at, token) in words {
        let begins = match keyword(token) {
            Some(Keyword::VALUES | Keyword::SELECT | Keyword::WITH | Keyword::FROM) if depth == 0 => Some(at),
            // In parentheses of its own; columns would be names.
            Some(Keyword::SELECT | Keyword::WITH | Keyword::VALUES) => opening,
            _ => None,
        };
        if let Some(first) = begins {
            let is_values = first == at && keyword(token) == Some(Keyword::VALUES);
            return Some(InsertSource { token: first, is_values });
        }
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        opening = match token.token {
            Token::LParen if depth == 1 => Some(at),
            Token::LParen => opening,
            _ => None,
        };
    }
    None
}

fn keyword(token: &TokenWithSpan) -> Option<Keyword> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// Reads an `INSERT` whose rows begin at `source`. Values that have to be computed first are a
/// query like any other.
pub(super) fn of_source(statement: &Statement, source: InsertSource) -> Result<Change> {
    if source.is_values
        && let Some(rows) = insert(&change::one(statement.tokens().to_vec())?)?
    {
        return Ok(rows);
    }
    let shorter = || Error::internal("a statement is shorter than it was");
    let (head, rest) = statement.tokens().split_at_checked(source.token).ok_or_else(shorter)?;
    let first = rest.first().and_then(|token| statement::offset(statement.text(), token.span.start));
    let text = first.and_then(|first| statement.text().get(first..)).ok_or_else(shorter)?;
    let mut head = head.to_vec();
    let null = [Token::make_keyword("VALUES"), Token::LParen, Token::make_keyword("NULL"), Token::RParen];
    head.extend(null.map(TokenWithSpan::wrap));
    match insert(&change::one(head)?)? {
        Some(Change::Insert { database, table, rows: InsertRows { columns, .. } }) => {
            let query =
                Statement::of(text, rest.to_vec())?.within(statement.scope().cloned()).with_tables_of(statement);
            Ok(Change::InsertQuery { database, table, columns, query })
        }
        _ => Err(Error::internal("NULL is no value")),
    }
}

/// Reads `INSERT INTO table [(columns)] VALUES (…), (…)`; `None` if a value is more than a literal.
fn insert(statement: &ast::Statement) -> Result<Option<Change>> {
    let ast::Statement::Insert(insert) = statement else { return refuse_more() };
    let ast::Insert { table: TableObject::TableName(name), columns, source: Some(source), .. } = insert else {
        return refuse_more();
    };
    let SetExpr::Values(values) = source.body.as_ref() else { return refuse_more() };
    let listed = columns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let listed = if listed.is_empty() { listed } else { format!("({listed}) ") };
    // Whatever else there is shows in the text.
    if insert.to_string() != format!("INSERT INTO {name} {listed}{values}") {
        return refuse_more();
    }
    let (database, table) = named(name)?;
    let columns = columns.iter().map(|column| match named(column)? {
        (None, column) => Ok(column),
        (Some(_), _) => refuse(format!("{column} is not a column")),
    });
    let columns = columns.collect::<Result<Vec<String>>>()?;
    let row = |row: &ast::Parens<Vec<Expr>>| row.content.iter().map(cell).collect::<Option<Vec<_>>>();
    let Some(values) = values.rows.iter().map(row).collect::<Option<_>>() else { return Ok(None) };
    Ok(Some(Change::Insert { database, table, rows: InsertRows { columns, values } }))
}

/// Returns the placeholders that stand for a whole value each in a query of `VALUES`, and the
/// column that the value is for.
pub(crate) fn placeholders(query: &Statement) -> Result<Vec<(String, usize)>> {
    change::with_stack(|| {
        let mut tokens = query.tokens().to_vec();
        parameters::number(&mut tokens)?;
        let query = statement::grammar(tokens, |dialect, tokens| {
            let parser = Parser::new(dialect).with_recursion_limit(statement::MAX_NESTING);
            let parsed = parser.with_tokens_with_locations(tokens).parse_query();
            parsed.map_err(|e| Error::Sql { reason: e.to_string() })
        })?;
        let SetExpr::Values(values) = query.body.as_ref() else { return Ok(Vec::new()) };
        let cells = values.rows.iter().flat_map(|row| row.content.iter().enumerate());
        let placeholder = |(at, cell): (usize, &Expr)| match cell {
            Expr::Value(ValueWithSpan { value: Value::Placeholder(id), .. }) => Some((id.clone(), at)),
            _ => None,
        };
        Ok(cells.filter_map(placeholder).collect())
    })
}

fn refuse_more<T>() -> Result<T> {
    refuse("INSERT INTO takes a table, columns, and VALUES or a query, and nothing else")
}

fn cell(expr: &Expr) -> Option<Option<Literal>> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Null, .. }) => Some(None),
        Expr::TypedString(typed) => time(typed).map(|time_ns| Some(Literal::Time(time_ns))),
        other => value(other).ok().map(Some),
    }
}

/// Returns the time that `DATE '…'` or `TIMESTAMP '…'` is.
fn time(typed: &TypedString) -> Option<i64> {
    const DAY_NS: i64 = 86_400_000_000_000;
    let Value::SingleQuotedString(text) = &typed.value.value else { return None };
    match typed.data_type {
        DataType::Date => i64::from(Date32Type::parse(text)?).checked_mul(DAY_NS),
        DataType::Timestamp(..) => time_of_text(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_change(sql: &str) -> Result<Change> {
        change::parse(&Statement::parse(sql)?)
    }

    #[test]
    fn rows_are_read_as_they_stand() {
        let sql = "INSERT INTO plant.\"Pump 1\" (time, id, \"rpm\", on) VALUES \
                   ('2026-01-31', 'a', -1.5, TRUE), (1, NULL, 7, FALSE);";
        let text = |text: &str| Some(Literal::Text(text.to_owned()));
        let expected = Change::Insert {
            database: Some("plant".to_owned()),
            table: "Pump 1".to_owned(),
            rows: InsertRows {
                columns: ["time", "id", "rpm", "on"].map(str::to_owned).to_vec(),
                values: vec![
                    vec![text("2026-01-31"), text("a"), Some(Literal::Float(-1.5)), Some(Literal::Boolean(true))],
                    vec![Some(Literal::Integer(1)), None, Some(Literal::Integer(7)), Some(Literal::Boolean(false))],
                ],
            },
        };
        assert_eq!(parse_change(sql).unwrap(), expected);
        let all = parse_change("insert into m values (1, 'x')").unwrap();
        assert!(matches!(all, Change::Insert { database: None, rows, .. } if rows.columns.is_empty()));
    }

    #[test]
    fn what_else_can_be_said_of_rows_is_refused() {
        let refused = [
            "INSERT INTO m",
            "INSERT INTO m SET a = 1",
            "INSERT INTO m TABLE n",
            "INSERT INTO m (a) EXPLAIN SELECT 1",
            "INSERT INTO m (a) VALUES (1) RETURNING a",
            "INSERT INTO m (a) VALUES (now()) RETURNING a",
            "INSERT INTO m (a) VALUES (now()) ON CONFLICT DO NOTHING",
            "INSERT OR REPLACE INTO m (a) SELECT 1",
            "INSERT OVERWRITE m SELECT 1",
            "INSERT INTO m PARTITION (a) SELECT 1",
            "INSERT INTO a.b.c SELECT 1",
            "INSERT INTO m AS n SELECT 1",
            "WITH n AS (SELECT 1) INSERT INTO m SELECT * FROM n",
            "INSERT INTO m (a) VALUES (1) ON CONFLICT DO NOTHING",
            "INSERT OR REPLACE INTO m (a) VALUES (1)",
            "INSERT OVERWRITE m VALUES (1)",
            "INSERT INTO m (a) VALUES (1) LIMIT 1",
            "INSERT INTO m DEFAULT VALUES",
            "INSERT INTO a.b.c VALUES (1)",
            "INSERT INTO m (n.a) VALUES (1)",
        ];
        for sql in refused {
            assert!(matches!(parse_change(sql), Err(Error::Sql { .. })), "{sql}");
        }
    }

    #[test]
    fn rows_to_compute_are_left_as_the_query_that_they_are() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        for (sql, columns, query) in [
            ("INSERT INTO m SELECT * FROM n", names(&[]), "SELECT * FROM n"),
            ("INSERT INTO m(a, \"select\")\n  select 1 // 2,\n 'ü'", names(&["a", "select"]), "select 1 // 2,\n 'ü'"),
            ("/* SELECT */ insert into m (time) -- ü\n(SELECT 1);", names(&["time"]), "(SELECT 1);"),
            ("INSERT INTO m ((SELECT 1) UNION ALL (SELECT 2))", names(&[]), "((SELECT 1) UNION ALL (SELECT 2))"),
            ("INSERT INTO m WITH n AS (SELECT 1) SELECT * FROM n", names(&[]), "WITH n AS (SELECT 1) SELECT * FROM n"),
            ("INSERT INTO m FROM n", names(&[]), "FROM n"),
            ("INSERT INTO m (a) VALUES (1 + 1), (now())", names(&["a"]), "VALUES (1 + 1), (now())"),
            ("INSERT INTO m (a) VALUES (1, ?)", names(&["a"]), "VALUES (1, ?)"),
        ] {
            let query = Statement::parse(query).unwrap();
            let expected = Change::InsertQuery { database: None, table: "m".into(), columns, query };
            assert_eq!(parse_change(sql).unwrap(), expected, "{sql}");
        }
    }
}
