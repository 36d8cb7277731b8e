//! Statements that change data: from text to what they ask the engine to do.
//!
//! Owns which of SQL's deletes, drops, inserts and creates can be said. Never runs anything: what
//! queries may do is decided elsewhere and does not include this.

use datafusion::sql::sqlparser::{
    ast::{self, FromTable, ObjectName, ObjectType, TableFactor, TableWithJoins},
    parser::Parser,
    tokenizer::TokenWithSpan,
};

use super::{
    condition::condition,
    create,
    insert::{self, InsertRows},
    session::CATALOG,
    snapshots::{self, RestorePoint},
    statement::{self, Statement, refuse},
};
use crate::{ColumnTypes, Error, Predicate, Result, model::Column};

/// Stack for the parsed tree, which can be as deep as a statement has operators. Only pages that
/// are touched take memory.
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
    /// `INSERT INTO table … VALUES …` with values as they stand, in the database named or else the
    /// default one.
    Insert { database: Option<String>, table: String, rows: InsertRows },
    /// `INSERT INTO table … SELECT …`, likewise: the columns named, all where there are none, and
    /// the query.
    InsertQuery { database: Option<String>, table: String, columns: Vec<String>, query: Statement },
    /// `CREATE DATABASE [IF NOT EXISTS] database`.
    CreateDatabase { database: String, if_not_exists: bool },
    /// `CREATE TABLE [IF NOT EXISTS] table (…)`, in the database named or else the default one.
    CreateTable {
        database: Option<String>,
        table: String,
        has_primary_key: bool,
        columns: Vec<Column>,
        /// Indices of columns of times that go by the unit of the table.
        plain_times: Vec<usize>,
        types: ColumnTypes,
        if_not_exists: bool,
    },
    /// `CREATE SNAPSHOT [IF NOT EXISTS] name`.
    CreateSnapshot { name: String, if_not_exists: bool },
    /// `DROP SNAPSHOT [IF EXISTS] name`.
    DropSnapshot { name: String, if_exists: bool },
    /// `RESTORE TABLE table AS OF …`, in the database named or else the default one.
    Restore { database: Option<String>, table: String, to: RestorePoint },
}

/// Parses one statement that changes data.
pub(crate) fn parse(statement: &Statement) -> Result<Change> {
    if let Some(change) = snapshots::parse(statement) {
        return change;
    }
    with_stack(|| match insert::source(statement) {
        Some(source) => insert::of_source(statement, source),
        None => change(one(statement.tokens().to_vec())?),
    })
}

/// Does what needs much stack, and drops there what is deep. Limits see to it that it does not take
/// long.
pub(super) fn with_stack<T: Send>(parse: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("arc-parse".to_owned()).stack_size(STACK_BYTES);
        let parsing = thread.spawn_scoped(scope, parse).map_err(|_| super::error::busy("no thread for a statement"))?;
        parsing.join().unwrap_or_else(|panic| Err(super::error::panicked(&*panic)))
    })
}

pub(super) fn one(tokens: Vec<TokenWithSpan>) -> Result<ast::Statement> {
    let mut statements = statement::grammar(tokens, |dialect, tokens| {
        let parser = Parser::new(dialect).with_recursion_limit(statement::MAX_NESTING);
        let parsed = parser.with_tokens_with_locations(tokens).parse_statements();
        parsed.map_err(|e| Error::Sql { reason: e.to_string() })
    })?;
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
                 CREATE DATABASE, INSERT, CREATE SNAPSHOT, DROP SNAPSHOT and RESTORE TABLE are"
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
        Some([catalog, database, table]) if catalog == CATALOG => Ok((Some(database.clone()), table.clone())),
        _ => refuse(format!("{name} is no table; expected table, database.table or {CATALOG}.database.table")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(sql: &str) -> Result<Change> {
        super::parse(&Statement::parse(sql)?)
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
            assert!(matches!(parse(sql), Err(Error::Sql { .. })), "{sql}");
        }
    }
}
