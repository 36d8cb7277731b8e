//! Statements that change data: which call of the engine each of them is.

use super::{Deleted, Engine};
use crate::{Error, ErrorKind, Predicate, Result, Written, query::Change};

/// What a statement that changes data did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Executed {
    /// Points were deleted.
    Deleted(Deleted),
    /// A table or a database was dropped.
    Dropped,
    /// There was nothing to drop, and the statement said `IF EXISTS`.
    NothingToDrop,
    /// Rows were written.
    Inserted(Written),
    /// A database was created.
    Created,
    /// There was nothing to create, and the statement said `IF NOT EXISTS`.
    NothingToCreate,
}

/// Points of one table that are to be deleted.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Deletion {
    /// The database.
    pub database: String,
    /// The table.
    pub table: String,
    /// Which of its points.
    pub predicate: Predicate,
}

impl Deletion {
    /// Returns the deletion of these points.
    #[must_use]
    pub fn new(database: impl Into<String>, table: impl Into<String>, predicate: Predicate) -> Self {
        Self { database: database.into(), table: table.into(), predicate }
    }
}

impl Engine {
    /// Runs one SQL statement that changes data; a name without a database means a table of `database`.
    /// [`sql`](Self::sql) never changes anything.
    ///
    /// Knows `DELETE FROM table WHERE …` ([`delete`](Self::delete)), `DROP TABLE [IF EXISTS] table`
    /// ([`drop_table`](Self::drop_table)), `DROP DATABASE [IF EXISTS] database` ([`drop_database`](Self::drop_database)),
    /// `CREATE DATABASE [IF NOT EXISTS] database` ([`create_database`](Self::create_database)) and
    /// `INSERT INTO table [(columns)] VALUES …`, which writes rows to a table that is there, all or nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for a statement that is none of these; otherwise as the call that it stands for.
    pub fn execute(&self, database: &str, sql: &str) -> Result<Executed> {
        match crate::query::parse_change(sql)? {
            Change::Delete { database: named, table, predicate } => {
                self.delete(named.as_deref().unwrap_or(database), &table, &predicate).map(Executed::Deleted)
            }
            Change::DropTable { database: named, table, if_exists } => {
                dropped(self.drop_table(named.as_deref().unwrap_or(database), &table), if_exists)
            }
            Change::DropDatabase { database, if_exists } => dropped(self.drop_database(&database), if_exists),
            Change::Insert { database: named, table, rows } => {
                self.insert(named.as_deref().unwrap_or(database), &table, &rows).map(Executed::Inserted)
            }
            Change::CreateDatabase { database, if_not_exists } => match self.create_database(&database) {
                Ok(()) => Ok(Executed::Created),
                Err(Error::DatabaseExists { .. }) if if_not_exists => Ok(Executed::NothingToCreate),
                Err(error) => Err(error),
            },
        }
    }

    /// Returns what a statement would delete, `None` if it is another one that [`execute`](Self::execute) knows. The
    /// predicate is as the delete would apply it ([`check_delete`](Self::check_delete)).
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute).
    pub fn deletion(&self, database: &str, sql: &str) -> Result<Option<Deletion>> {
        match crate::query::parse_change(sql)? {
            Change::Delete { database: named, table, predicate } => {
                let database = named.as_deref().unwrap_or(database);
                let predicate = self.check_delete(database, &table, &predicate)?;
                Ok(Some(Deletion::new(database, table, predicate)))
            }
            Change::DropTable { .. }
            | Change::DropDatabase { .. }
            | Change::Insert { .. }
            | Change::CreateDatabase { .. } => Ok(None),
        }
    }
}

fn dropped(result: Result<()>, if_exists: bool) -> Result<Executed> {
    match result {
        Ok(()) => Ok(Executed::Dropped),
        Err(error) if if_exists && error.kind() == ErrorKind::NotFound => Ok(Executed::NothingToDrop),
        Err(error) => Err(error),
    }
}
