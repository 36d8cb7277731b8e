//! `INSERT INTO … VALUES` and `CREATE DATABASE`: from the parsed statement to what they ask the engine to do.

use datafusion::sql::sqlparser::ast::{self, Expr, SetExpr, TableObject, Value, ValueWithSpan};

use super::{
    change::{Change, named, value},
    statement::refuse,
};
use crate::{Error, Literal, Result};

/// Rows to insert: the columns named, all where there are none, and their values, `None` for `NULL`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rows {
    pub(crate) columns: Vec<String>,
    pub(crate) values: Vec<Vec<Option<Literal>>>,
}

/// Reads `INSERT INTO table [(columns)] VALUES (…), (…)`.
pub(super) fn insert(insert: &ast::Insert) -> Result<Change> {
    let ast::Insert { table: TableObject::TableName(name), columns, source: Some(source), .. } = insert else {
        return refuse("INSERT INTO takes a table, columns and VALUES, and nothing else");
    };
    let SetExpr::Values(values) = source.body.as_ref() else {
        return refuse("INSERT takes VALUES; what a query gives is written by the client that asked");
    };
    let listed = columns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let listed = if listed.is_empty() { listed } else { format!("({listed}) ") };
    // Whatever else there is shows in the text.
    if insert.to_string() != format!("INSERT INTO {name} {listed}{values}") {
        return refuse("INSERT INTO takes a table, columns and VALUES, and nothing else");
    }
    let (database, table) = named(name)?;
    let columns = columns.iter().map(|column| match named(column)? {
        (None, column) => Ok(column),
        (Some(_), _) => refuse(format!("{column} is not a column")),
    });
    let columns = columns.collect::<Result<Vec<String>>>()?;
    let row = |(number, row): (usize, &ast::Parens<Vec<Expr>>)| {
        let cell = |(at, expr): (usize, &Expr)| cell(expr).ok_or_else(|| no_value(number, at, columns.get(at), expr));
        row.content.iter().enumerate().map(cell).collect::<Result<Vec<_>>>()
    };
    let values = values.rows.iter().enumerate().map(row).collect::<Result<_>>()?;
    Ok(Change::Insert { database, table, rows: Rows { columns, values } })
}

fn cell(expr: &Expr) -> Option<Option<Literal>> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Null, .. }) => Some(None),
        other => value(other).ok().map(Some),
    }
}

fn no_value(row: usize, at: usize, column: Option<&String>, expr: &Expr) -> Error {
    let column = column.map_or_else(|| format!("column {}", at + 1), |column| format!("column {column:?}"));
    let reason =
        format!("row {}, {column}: {expr} is no value; VALUES takes numbers, texts, TRUE, FALSE and NULL", row + 1);
    Error::Sql { reason }
}

/// Reads `CREATE DATABASE [IF NOT EXISTS] name`.
pub(super) fn create_database(statement: &ast::Statement) -> Result<Change> {
    let ast::Statement::CreateDatabase { db_name, if_not_exists, .. } = statement else {
        return refuse("CREATE takes DATABASE, IF NOT EXISTS and a name; tables come with the first write");
    };
    let condition = if *if_not_exists { "IF NOT EXISTS " } else { "" };
    if statement.to_string() != format!("CREATE DATABASE {condition}{db_name}") {
        return refuse("CREATE DATABASE takes IF NOT EXISTS and a name, and nothing else");
    }
    match named(db_name)? {
        (None, database) => Ok(Change::CreateDatabase { database, if_not_exists: *if_not_exists }),
        (Some(_), _) => refuse(format!("{db_name} is no database; quote a name that has a dot")),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::parse_change, *};
    use crate::{is_change, is_write};

    #[test]
    fn rows_are_read_as_they_stand() {
        let sql = "INSERT INTO plant.\"Pump 1\" (time, id, \"rpm\", on) VALUES \
                   ('2026-01-31', 'a', -1.5, TRUE), (1, NULL, 7, FALSE);";
        let text = |text: &str| Some(Literal::Text(text.to_owned()));
        let expected = Change::Insert {
            database: Some("plant".to_owned()),
            table: "Pump 1".to_owned(),
            rows: Rows {
                columns: ["time", "id", "rpm", "on"].map(str::to_owned).to_vec(),
                values: vec![
                    vec![text("2026-01-31"), text("a"), Some(Literal::Float(-1.5)), Some(Literal::Boolean(true))],
                    vec![Some(Literal::Integer(1)), None, Some(Literal::Integer(7)), Some(Literal::Boolean(false))],
                ],
            },
        };
        assert!(is_change(sql) && is_write(sql));
        assert_eq!(parse_change(sql).unwrap(), expected);
        let all = parse_change("insert into m values (1, 'x')").unwrap();
        assert!(matches!(all, Change::Insert { database: None, rows, .. } if rows.columns.is_empty()));
    }

    #[test]
    fn what_else_can_be_said_of_rows_is_refused() {
        let refused = [
            "INSERT INTO m SELECT * FROM n",
            "INSERT INTO m (a) VALUES (1) RETURNING a",
            "INSERT INTO m (a) VALUES (1) ON CONFLICT DO NOTHING",
            "INSERT OR REPLACE INTO m (a) VALUES (1)",
            "INSERT OVERWRITE m VALUES (1)",
            "INSERT INTO m (a) VALUES (1 + 1)",
            "INSERT INTO m (a) VALUES (now())",
            "INSERT INTO m (a) VALUES ((SELECT 1))",
            "INSERT INTO m (a) VALUES (1) LIMIT 1",
            "INSERT INTO m DEFAULT VALUES",
            "INSERT INTO a.b.c VALUES (1)",
            "INSERT INTO m (n.a) VALUES (1)",
            "CREATE DATABASE a.b",
            "CREATE DATABASE a LOCATION 'x'",
            "CREATE OR REPLACE DATABASE a",
            "CREATE SCHEMA a",
            "CREATE TABLE t (a INT)",
            "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x'",
        ];
        for sql in refused {
            assert!(matches!(parse_change(sql), Err(Error::Sql { .. })), "{sql}");
        }
        for (sql, place) in [
            ("INSERT INTO m (a, b) VALUES (1, 2), (3, now())", "row 2, column \"b\": now() is no value"),
            ("INSERT INTO m VALUES (1, $$x$$)", "row 1, column 2: $$x$$ is no value"),
        ] {
            let error = parse_change(sql).unwrap_err().to_string();
            assert!(error.contains(place), "{error}");
        }
        let expected = Change::CreateDatabase { database: "a.b".to_owned(), if_not_exists: true };
        assert_eq!(parse_change("create database if not exists \"a.b\"").unwrap(), expected);
    }
}
