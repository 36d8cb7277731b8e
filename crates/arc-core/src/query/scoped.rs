//! The tables that a statement sees whose caller may not see all of them.
//!
//! Everything that a statement can find out about tables comes through [`QueryTables`]: planning,
//! `SHOW`, the information schema and `EXPLAIN`. What is left out here is not there for any of
//! them.

use std::sync::Arc;

use super::{QueryTables, Statement};
use crate::{AccessScope, Error, PastMoment, Result, SnapshotInfo, catalog::TableSchema, view::TableView};

/// Returns `tables` as the statement's caller may see them.
pub(super) fn of(statement: &Statement, tables: &Arc<dyn QueryTables>) -> Arc<dyn QueryTables> {
    match statement.scope() {
        Some(scope) => Arc::new(Scoped { tables: Arc::clone(tables), scope: scope.clone() }),
        None => Arc::clone(tables),
    }
}

#[derive(Debug)]
struct Scoped {
    tables: Arc<dyn QueryTables>,
    scope: AccessScope,
}

impl Scoped {
    fn reads(&self, database: &str, table: &str) -> bool {
        self.scope.access().reads(database, table)
    }
}

impl QueryTables for Scoped {
    fn databases(&self) -> Vec<String> {
        let mut databases = self.tables.databases();
        databases.retain(|database| self.scope.access().sees(database));
        databases
    }

    fn tables(&self, database: &str) -> Option<Vec<String>> {
        let mut tables = self.tables.tables(database).filter(|_| self.scope.access().sees(database))?;
        tables.retain(|table| self.reads(database, table));
        Some(tables)
    }

    fn schema(&self, database: &str, table: &str) -> Option<Arc<TableSchema>> {
        self.reads(database, table).then(|| self.tables.schema(database, table))?
    }

    fn view(&self, database: &str, table: &str) -> Result<Option<TableView>> {
        if self.reads(database, table) { self.tables.view(database, table) } else { Ok(None) }
    }

    fn file_totals(&self, database: &str, table: &str) -> Option<(usize, u64)> {
        self.reads(database, table).then(|| self.tables.file_totals(database, table))?
    }

    fn folder(&self, database: &str, table: &str) -> String {
        self.tables.folder(database, table)
    }

    fn at(&self, moment: &PastMoment) -> Result<Arc<dyn QueryTables>> {
        let tables = self.tables.at(moment)?;
        Ok(Arc::new(Self { tables, scope: self.scope.clone() }))
    }

    /// Returns the snapshots in which there is a table that the caller may read.
    fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        let mut seen = Vec::new();
        for snapshot in self.tables.snapshots()? {
            match self.at(&PastMoment::Snapshot(snapshot.name.clone())) {
                Ok(was) if has_tables(&*was) => seen.push(snapshot),
                Ok(_) | Err(Error::SnapshotNotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(seen)
    }
}

fn has_tables(tables: &dyn QueryTables) -> bool {
    tables.databases().iter().any(|database| tables.tables(database).is_some_and(|names| !names.is_empty()))
}
