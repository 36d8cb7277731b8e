//! `CREATE TABLE` and `CREATE DATABASE`: from the parsed statement to what they ask the engine to
//! do.
//!
//! Owns which of SQL's types are which of ours, and that the texts of a primary key are tags.

use arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{
    self, ColumnDef, ColumnOption, CreateTableOptions, Expr, Ident, ObjectName, PrimaryKeyConstraint, SqlOption,
    TableConstraint, TimezoneInfo, ValueWithSpan,
};

use super::{
    change::{Change, named},
    statement::refuse,
};
use crate::{
    ColumnTypes, FileTimeUnit, Result,
    model::{Column, ColumnKind, TIME_COLUMN, tag_type},
};

/// Reads `CREATE DATABASE [IF NOT EXISTS] name`.
pub(super) fn database(statement: &ast::Statement) -> Result<Change> {
    let ast::Statement::CreateDatabase { db_name, if_not_exists, .. } = statement else {
        return refuse("CREATE takes TABLE or DATABASE");
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

/// Reads `CREATE TABLE [IF NOT EXISTS] table (column type, …, PRIMARY KEY (tags, time))`.
pub(super) fn table(statement: &ast::CreateTable) -> Result<Change> {
    let ast::CreateTable { name, columns, constraints, if_not_exists, table_options, .. } = statement;
    let (mut types, with) = match table_options {
        CreateTableOptions::With(options) => (column_types(options)?, format!(" {table_options}")),
        _ => (ColumnTypes::default(), String::new()),
    };
    let condition = if *if_not_exists { "IF NOT EXISTS " } else { "" };
    let items = columns.iter().map(ToString::to_string).chain(constraints.iter().map(ToString::to_string));
    let items = items.collect::<Vec<_>>().join(", ");
    // Whatever else there is shows in the text.
    if columns.is_empty() || statement.to_string() != format!("CREATE TABLE {condition}{name} ({items}){with}") {
        return refuse(
            "CREATE TABLE takes IF NOT EXISTS, a name, columns with their types and a PRIMARY KEY, and WITH, and nothing else",
        );
    }
    let (database, table) = named(name)?;
    let key = primary_key(columns, constraints)?;
    // The time is there in any case.
    let is_column = |name: &String| name == TIME_COLUMN || columns.iter().any(|column| column.name.value == *name);
    if let Some(other) = key.iter().flatten().find(|name| !is_column(name)) {
        return refuse(format!("PRIMARY KEY has {other:?}, which is not one of the columns"));
    }
    let is_key = |name: &str| key.iter().flatten().any(|of_key| of_key == name);
    let mut made: Vec<Column> = Vec::with_capacity(columns.len());
    let mut plain_times = Vec::new();
    for ColumnDef { name: Ident { value: name, .. }, data_type: sql_type, .. } in columns {
        let data_type = typed(name, sql_type)?;
        let is_plain = matches!(sql_type, ast::DataType::Timestamp(None, _));
        if name == TIME_COLUMN {
            let Some(unit) = FileTimeUnit::of_type(&data_type) else {
                return refuse("column \"time\" is a TIMESTAMP in every table");
            };
            if !is_plain && *types.time_unit.get_or_insert(unit) != unit {
                return refuse(format!("column \"time\" is {sql_type}, which is not the time_unit"));
            }
            continue;
        }
        if is_plain {
            plain_times.push(made.len());
        }
        if is_key(name) && data_type != DataType::Utf8 {
            return refuse(format!(
                "column {name:?} is in the PRIMARY KEY, where there are tags and time: tags are TEXT"
            ));
        }
        let (kind, data_type) =
            if is_key(name) { (ColumnKind::Tag, tag_type()) } else { (ColumnKind::Field, data_type) };
        made.push(Column { name: name.as_str().into(), kind, data_type });
    }
    let mut names: Vec<&str> = columns.iter().map(|column| column.name.value.as_str()).collect();
    names.sort_unstable();
    if let Some([name, _]) = names.array_windows().find(|[one, next]| one == next) {
        return refuse(format!("column {name:?} comes twice"));
    }
    let if_not_exists = *if_not_exists;
    Ok(Change::CreateTable {
        database,
        table,
        has_primary_key: key.is_some(),
        columns: made,
        plain_times,
        types,
        if_not_exists,
    })
}

/// Reads `WITH (string_columns = 'attr_*, resource_*', on_conflict = 'widen', time_unit = 'us',
/// finer_times = 'reject')`.
fn column_types(options: &[SqlOption]) -> Result<ColumnTypes> {
    const OPTIONS: &str = "string_columns, on_conflict, time_unit and finer_times";
    let mut types = ColumnTypes::new();
    for option in options {
        let SqlOption::KeyValue { key, value: Expr::Value(ValueWithSpan { value, .. }) } = option else {
            return refuse(format!("{option} is no option of a table; {OPTIONS} are"));
        };
        let Some(text) = value.clone().into_string() else { return refuse(format!("{key} takes a text, not {value}")) };
        match key.value.as_str() {
            "string_columns" if types.string_columns.is_none() => {
                types = types.string_columns(ColumnTypes::split_patterns(&text))
            }
            "on_conflict" if types.on_conflict.is_none() => {
                types = types.on_conflict(text.parse().or_else(refuse)?);
            }
            "time_unit" if types.time_unit.is_none() => {
                types = types.time_unit(text.parse().or_else(refuse)?);
            }
            "finer_times" if types.finer_times.is_none() => {
                types = types.finer_times(text.parse().or_else(refuse)?);
            }
            "string_columns" | "on_conflict" | "time_unit" | "finer_times" => {
                return refuse(format!("{key} comes twice"));
            }
            _ => return refuse(format!("{key} is no option of a table; {OPTIONS} are")),
        }
    }
    Ok(types)
}

/// Returns the columns that identify a row, `None` if rows append.
fn primary_key(columns: &[ColumnDef], constraints: &[TableConstraint]) -> Result<Option<Vec<String>>> {
    let mut key = None;
    for column in columns {
        for option in &column.options {
            match &option.option {
                ColumnOption::PrimaryKey(PrimaryKeyConstraint { .. }) if key.is_none() => {
                    key = Some(vec![column.name.value.clone()]);
                }
                ColumnOption::Null => {}
                ColumnOption::NotNull if column.name.value == TIME_COLUMN => {}
                other => return refuse(format!("column {:?} cannot be {other}", column.name.value)),
            }
        }
    }
    for constraint in constraints {
        let TableConstraint::PrimaryKey(PrimaryKeyConstraint { columns, .. }) = constraint else {
            return refuse(format!("{constraint} is not known; PRIMARY KEY is"));
        };
        let names = columns.iter().map(|column| match &column.column.expr {
            Expr::Identifier(name) if column.to_string() == name.to_string() => Ok(name.value.clone()),
            _ => refuse(format!("{column} is no column that a PRIMARY KEY can name")),
        });
        if key.replace(names.collect::<Result<_>>()?).is_some() {
            return refuse("there are two primary keys");
        }
    }
    if key.as_ref().is_some_and(|key: &Vec<String>| !key.iter().any(|name| name == TIME_COLUMN)) {
        return refuse("a PRIMARY KEY has the tags and time: without time a tag would have one row");
    }
    Ok(key)
}

/// Returns the type of a field. There is one width of each kind of number.
fn typed(column: &str, data_type: &ast::DataType) -> Result<DataType> {
    use ast::DataType as Sql;
    Ok(match data_type {
        Sql::TinyInt(None) | Sql::SmallInt(None) | Sql::Int(None) | Sql::Integer(None) | Sql::BigInt(None) => {
            DataType::Int64
        }
        Sql::Int8(None) | Sql::Int2(None) | Sql::Int4(None) | Sql::Int64 | Sql::Int32 | Sql::Int16 => DataType::Int64,
        Sql::BigIntUnsigned(None) | Sql::IntUnsigned(None) | Sql::IntegerUnsigned(None) | Sql::UInt64 => {
            DataType::UInt64
        }
        Sql::UBigInt | Sql::Unsigned | Sql::UnsignedInteger => DataType::UInt64,
        Sql::Double(_)
        | Sql::DoublePrecision
        | Sql::Float(_)
        | Sql::Real
        | Sql::Float64
        | Sql::Float8
        | Sql::Float4 => DataType::Float64,
        Sql::Bool | Sql::Boolean => DataType::Boolean,
        Sql::Text | Sql::String(_) | Sql::Varchar(None) | Sql::CharVarying(None) | Sql::CharacterVarying(None) => {
            DataType::Utf8
        }
        Sql::Timestamp(None | Some(3 | 6 | 9), TimezoneInfo::None | TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => {
            match data_type {
                Sql::Timestamp(Some(3), _) => FileTimeUnit::Millisecond.time_type(),
                Sql::Timestamp(Some(6), _) => FileTimeUnit::Microsecond.time_type(),
                _ => FileTimeUnit::Nanosecond.time_type(),
            }
        }
        Sql::Custom(ObjectName(name), arguments) if arguments.is_empty() && is(name, "ubigint") => DataType::UInt64,
        other => {
            return refuse(format!(
                "column {column:?} cannot be {other}; there are BIGINT, BIGINT UNSIGNED, DOUBLE, BOOLEAN, TEXT and \
                 TIMESTAMP, also with 3, 6 or 9 digits"
            ));
        }
    })
}

fn is(name: &[ast::ObjectNamePart], word: &str) -> bool {
    matches!(name, [part] if part.as_ident().is_some_and(|ident| ident.value.eq_ignore_ascii_case(word)))
}

#[cfg(test)]
mod tests {
    use super::{super::change, *};
    use crate::{Error, Statement};

    fn parse_change(sql: &str) -> Result<Change> {
        change::parse(&Statement::parse(sql)?)
    }

    fn shown(sql: &str) -> String {
        match parse_change(sql).unwrap() {
            Change::CreateTable { database, table, has_primary_key, columns, plain_times, types, if_not_exists } => {
                let plain = if plain_times.is_empty() { String::new() } else { format!(" {plain_times:?}") };
                let columns =
                    columns.iter().map(|column| format!("{} {:?} {}", column.name, column.kind, column.data_type));
                let columns = columns.collect::<Vec<_>>().join(", ");
                let types = if types.is_empty() { String::new() } else { format!(" {types:?}") };
                format!(
                    "{} {table} {has_primary_key} {if_not_exists} ({columns}){plain}{types}",
                    database.unwrap_or_default()
                )
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn texts_of_the_primary_key_are_tags_and_numbers_have_64_bits() {
        let tag = "Tag Dictionary(Int32, Utf8)";
        let cases = [
            (
                "CREATE TABLE pump (time TIMESTAMP NOT NULL, id TEXT, rpm BIGINT, PRIMARY KEY (id, time))",
                format!(" pump true false (id {tag}, rpm Field Int64)"),
            ),
            (
                "create table if not exists d.\"p 1\" (a int, b integer, c smallint, u bigint unsigned, v ubigint)",
                "d p 1 false true (a Field Int64, b Field Int64, c Field Int64, u Field UInt64, v Field UInt64)".into(),
            ),
            (
                "CREATE TABLE m (x DOUBLE, y REAL NULL, z DOUBLE PRECISION, w FLOAT, b BOOLEAN, s VARCHAR, t TIMESTAMPTZ)",
                " m false false (x Field Float64, y Field Float64, z Field Float64, w Field Float64, b Field Boolean, \
                 s Field Utf8, t Field Timestamp(ns, \"UTC\")) [6]"
                    .into(),
            ),
            ("CREATE TABLE m (time TIMESTAMP PRIMARY KEY, x DOUBLE);", " m true false (x Field Float64)".into()),
            (
                "CREATE TABLE m (x DOUBLE) WITH (string_columns = 'a_*, b', on_conflict = 'widen')",
                " m false false (x Field Float64) ColumnTypes { string_columns: Some([\"a_*\", \"b\"]), on_conflict: \
                 Some(Widen), time_unit: None, finer_times: None }"
                    .into(),
            ),
            (
                "CREATE TABLE m (x DOUBLE) WITH (time_unit = 'us')",
                " m false false (x Field Float64) ColumnTypes { string_columns: None, on_conflict: None, time_unit: \
                 Some(Microsecond), finer_times: None }"
                    .into(),
            ),
            (
                "CREATE TABLE m (x DOUBLE) WITH (time_unit = 'ms', finer_times = 'reject')",
                " m false false (x Field Float64) ColumnTypes { string_columns: None, on_conflict: None, time_unit: \
                 Some(Millisecond), finer_times: Some(Reject) }"
                    .into(),
            ),
            (
                "CREATE TABLE m (time TIMESTAMP(6), x TIMESTAMP(3), y TIMESTAMP(6) WITH TIME ZONE, z TIMESTAMP(9))",
                " m false false (x Field Timestamp(ms, \"UTC\"), y Field Timestamp(µs, \"UTC\"), z Field Timestamp(ns, \
                 \"UTC\")) ColumnTypes { string_columns: None, on_conflict: None, time_unit: Some(Microsecond), \
                 finer_times: None }"
                    .into(),
            ),
            // The time is there in any case, the key may be it alone.
            ("CREATE TABLE m (id TEXT, PRIMARY KEY (id, time))", format!(" m true false (id {tag})")),
            ("CREATE TABLE m (x TEXT, PRIMARY KEY (time))", " m true false (x Field Utf8)".into()),
        ];
        for (sql, expected) in cases {
            assert_eq!(shown(sql), expected, "{sql}");
        }
        let expected = Change::CreateDatabase { database: "a.b".to_owned(), if_not_exists: true };
        assert_eq!(parse_change("create database if not exists \"a.b\"").unwrap(), expected);
    }

    #[test]
    fn what_a_table_cannot_be_is_said() {
        for (sql, reason) in [
            ("CREATE TABLE m", "nothing else"),
            ("CREATE TABLE m ()", "nothing else"),
            ("CREATE TABLE m AS SELECT 1", "nothing else"),
            ("CREATE TABLE m (x INT) AS SELECT 1", "nothing else"),
            ("CREATE OR REPLACE TABLE m (x INT)", "nothing else"),
            ("CREATE TEMPORARY TABLE m (x INT)", "nothing else"),
            ("CREATE TABLE m (x INT) WITH (a = 'b')", "string_columns, on_conflict, time_unit and finer_times are"),
            ("CREATE TABLE m (x INT) WITH (on_conflict = 1)", "on_conflict takes a text"),
            ("CREATE TABLE m (x INT) WITH (on_conflict = 'w')", "\"w\" is no way"),
            ("CREATE TABLE m (x INT) WITH (on_conflict = 'widen', on_conflict = 'widen')", "comes twice"),
            ("CREATE TABLE m (x INT) WITH (time_unit = 's')", "expected ns, us or ms"),
            ("CREATE TABLE m (x INT) WITH (time_unit = 'us', time_unit = 'us')", "comes twice"),
            ("CREATE TABLE m (x INT) WITH (finer_times = 'drop')", "expected keep, reject or round"),
            ("CREATE TABLE m (x INT) WITH (finer_times = 'keep', finer_times = 'round')", "comes twice"),
            ("CREATE TABLE m (x INT) TBLPROPERTIES ('on_conflict' = 'widen')", "nothing else"),
            ("CREATE TABLE m LIKE n", "nothing else"),
            ("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x'", ""),
            ("CREATE TABLE a.b.c (x INT)", "a.b.c"),
            ("CREATE TABLE m (x INT, x DOUBLE)", "\"x\" comes twice"),
            ("CREATE TABLE m (time BIGINT, x INT)", "TIMESTAMP in every table"),
            ("CREATE TABLE m (x INT NOT NULL)", "\"x\" cannot be NOT NULL"),
            ("CREATE TABLE m (x INT DEFAULT 1)", "\"x\" cannot be DEFAULT 1"),
            ("CREATE TABLE m (x INT, UNIQUE (x))", "PRIMARY KEY is"),
            ("CREATE TABLE m (id TEXT PRIMARY KEY)", "the tags and time"),
            ("CREATE TABLE m (id TEXT, time TIMESTAMP, PRIMARY KEY (id))", "the tags and time"),
            ("CREATE TABLE m (id INT, time TIMESTAMP, PRIMARY KEY (id, time))", "tags are TEXT"),
            ("CREATE TABLE m (time TIMESTAMP, PRIMARY KEY (id, time))", "\"id\", which is not one of"),
            ("CREATE TABLE m (x TEXT, PRIMARY KEY (x, id, time))", "\"id\", which is not one of"),
            ("CREATE TABLE m (time TIMESTAMP PRIMARY KEY, PRIMARY KEY (time))", "two primary keys"),
            ("CREATE TABLE m (x DECIMAL(10, 2))", "\"x\" cannot be DECIMAL(10,2)"),
            ("CREATE TABLE m (x VARCHAR(10))", "VARCHAR(10)"),
            ("CREATE TABLE m (x TIMESTAMP(0))", "\"x\" cannot be TIMESTAMP(0); there are"),
            ("CREATE TABLE m (time TIMESTAMP(12))", "\"time\" cannot be TIMESTAMP(12)"),
            ("CREATE TABLE m (time TIMESTAMP(6)) WITH (time_unit = 'ms')", "\"time\" is TIMESTAMP(6), which is not"),
            ("CREATE VIEW m AS SELECT 1", ""),
            ("CREATE DATABASE a.b", "a.b"),
            ("CREATE DATABASE a LOCATION 'x'", ""),
            ("CREATE OR REPLACE DATABASE a", ""),
            ("CREATE SCHEMA a", ""),
        ] {
            match parse_change(sql) {
                Err(Error::Sql { reason: said }) => assert!(said.contains(reason), "{sql}: {said}"),
                other => panic!("{sql}: {other:?}"),
            }
        }
    }
}
