//! What a statement that changes data is about, before it is run.

use super::{
    Statement,
    change::{self, Change},
};
use crate::Result;

/// The table, the whole database, or all of them, that a statement changes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeTarget {
    /// The database.
    pub database: String,
    /// The table; none where the statement is about the database.
    pub table: Option<String>,
    /// Whether the statement is about all databases, as those about snapshots are.
    pub is_everything: bool,
}

impl Statement {
    /// Returns what the statement changes, if names without a database mean tables of `database`.
    ///
    /// Whether there is such a table shows when the statement is run. The tables that an `INSERT`
    /// reads are not named here: [`within`](Self::within) is for them. Parses the statement on a
    /// thread of its own, and waits for it.
    ///
    /// # Errors
    ///
    /// As [`Engine::execute`](crate::Engine::execute) for a statement that does not parse, or
    /// changes nothing.
    pub fn change_target(&self, database: &str) -> Result<ChangeTarget> {
        let (named, table) = match change::parse(self)? {
            Change::Delete { database, table, .. }
            | Change::DropTable { database, table, .. }
            | Change::Insert { database, table, .. }
            | Change::InsertQuery { database, table, .. }
            | Change::Restore { database, table, .. }
            | Change::CreateTable { database, table, .. } => (database, Some(table)),
            Change::CreateSnapshot { .. } | Change::DropSnapshot { .. } => {
                return Ok(ChangeTarget { database: database.to_owned(), table: None, is_everything: true });
            }
            Change::DropDatabase { database, .. } | Change::CreateDatabase { database, .. } => (Some(database), None),
        };
        Ok(ChangeTarget { database: named.unwrap_or_else(|| database.to_owned()), table, is_everything: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_names_what_it_is_about() {
        for (sql, database, table) in [
            ("DELETE FROM a WHERE time < '2026-01-01'", "d", Some("a")),
            ("DROP TABLE x.a", "x", Some("a")),
            ("DROP DATABASE IF EXISTS x", "x", None),
            ("CREATE DATABASE x", "x", None),
            ("CREATE TABLE a (time TIMESTAMP, v DOUBLE)", "d", Some("a")),
            ("INSERT INTO x.a (v) VALUES (1)", "x", Some("a")),
            ("INSERT INTO arc.x.a (v) VALUES (1)", "x", Some("a")),
            ("DELETE FROM arc.x.a", "x", Some("a")),
            ("INSERT INTO a (v) SELECT v FROM y.b", "d", Some("a")),
        ] {
            let target = Statement::parse(sql).unwrap().change_target("d").unwrap();
            assert_eq!((target.database.as_str(), target.table.as_deref()), (database, table), "{sql}");
        }
        assert!(Statement::parse("SELECT 1").unwrap().change_target("d").is_err());
    }
}
