//! Statements that change data: which call of the engine each of them is.

use arrow::{
    array::{Array, AsArray, RecordBatch},
    datatypes::TimestampNanosecondType,
};

use super::{
    Deleted, Engine,
    insert_query::{Insertion, blocking, on_own_runtime},
};
use crate::{
    Error, ErrorKind, PastMoment, Predicate, Result, Statement, WriteOptions, Written,
    model::TableSchema,
    query::{Change, RestorePoint},
};

/// What a statement that changes data did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Executed {
    /// Points were deleted.
    Deleted(Deleted),
    /// A table, a database or a snapshot was dropped.
    Dropped,
    /// There was nothing to drop, and the statement said `IF EXISTS`.
    NothingToDrop,
    /// Rows were written.
    Inserted(Written),
    /// A table, a database or a snapshot was created.
    Created,
    /// There was nothing to create, and the statement said `IF NOT EXISTS`.
    NothingToCreate,
    /// A table is again as it was.
    Restored,
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
    ///
    /// ```
    /// use arc_core::{Comparison, Deletion, Predicate};
    ///
    /// let deletion = Deletion::new("plant", "pump", Predicate::compare("id", Comparison::Equal, "7"));
    /// assert_eq!(deletion.predicate.to_string(), "\"id\" = '7'");
    /// ```
    #[must_use]
    pub fn new(database: impl Into<String>, table: impl Into<String>, predicate: Predicate) -> Self {
        Self { database: database.into(), table: table.into(), predicate }
    }
}

impl Engine {
    /// Runs one SQL statement that changes data; a name without a database means a table of
    /// `database`. [`sql`](Self::sql) never changes anything.
    ///
    /// Knows `DELETE FROM table WHERE …` ([`delete`](Self::delete)), `DROP TABLE [IF EXISTS] table`
    /// ([`drop_table`](Self::drop_table)), `DROP DATABASE [IF EXISTS] database`
    /// ([`drop_database`](Self::drop_database)), `CREATE DATABASE [IF NOT EXISTS] database`
    /// ([`create_database`](Self::create_database)),
    /// `CREATE TABLE [IF NOT EXISTS] table (column type, …, PRIMARY KEY (tags, time)) [WITH (string_columns = 'attr_*')]`
    /// ([`create_table_with`](Self::create_table_with)), `INSERT INTO table [(columns)] VALUES …`,
    /// which writes rows to a table that is there, all or nothing,
    /// `CREATE SNAPSHOT [IF NOT EXISTS] name` ([`create_snapshot`](Self::create_snapshot)),
    /// `DROP SNAPSHOT [IF EXISTS] name` ([`drop_snapshot`](Self::drop_snapshot)),
    /// `RESTORE TABLE table AS OF time` ([`restore_table`](Self::restore_table)) and
    /// `INSERT INTO table [(columns)] SELECT …`, for which [`run`](Self::run) is the better call:
    /// here the query has one thread, and nothing but its time limit ends it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// use arc_core::Executed;
    ///
    /// engine.execute("plant", "CREATE DATABASE plant")?;
    /// let columns = "time TIMESTAMP, id VARCHAR, rpm DOUBLE, PRIMARY KEY (id, time)";
    /// engine.execute("plant", &format!("CREATE TABLE pump ({columns})"))?;
    /// engine.execute("plant", "INSERT INTO pump VALUES ('2026-01-31T12:00:00Z', '7', 1450)")?;
    /// let done = engine.execute("plant", "DELETE FROM pump WHERE id = '7'")?;
    /// assert!(matches!(done, Executed::Deleted(_)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for a statement that is none of these; otherwise as the call
    /// that it stands for.
    pub fn execute(&self, database: &str, sql: &str) -> Result<Executed> {
        match crate::query::parse_change(&Statement::parse(sql)?)? {
            Change::InsertQuery { database: named, table, columns, query } => {
                let target = named.as_deref().unwrap_or(database);
                let insertion = Insertion::new(database, target, &table, &columns, &query);
                on_own_runtime(self.insert_query(insertion, None, &WriteOptions::new())).map(Executed::Inserted)
            }
            change => self.execute_change(database, change, &WriteOptions::new()),
        }
    }

    /// Runs one SQL statement that changes data, as [`execute`](Self::execute) does, on a tokio
    /// runtime. What waits for the disk, waits on a thread that may.
    ///
    /// `values` are for the placeholders of an `INSERT`, as in [`sql_with`](Self::sql_with). Of
    /// `options` the durability holds for the rows of an `INSERT`.
    ///
    /// An `INSERT` whose rows come from a query runs like one, within the limits of queries. It
    /// sees the tables as they are when it begins, so that a table can be copied into itself. Its
    /// rows are stored in parts of some megabytes, each of them as a whole or not at all, while the
    /// query goes on. Dropping the future ends it after the part under way.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use arc_core::{Durability, Executed, Statement, WriteOptions};
    ///
    /// let statement = Statement::parse("INSERT INTO pump SELECT time, '8' AS id, rpm + 1 AS rpm FROM pump")?;
    /// let options = WriteOptions::new().durability(Durability::Process);
    /// let done = engine.run("plant", &statement, None, &options).await?;
    /// assert!(matches!(done, Executed::Inserted(written) if written.points == 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute) and [`sql`](Self::sql); [`Error::InsertStopped`] with the
    /// number of rows if a part of them is stored; [`ErrorKind::InvalidInput`] for values that
    /// nothing takes.
    pub async fn run(
        &self,
        database: &str,
        statement: &Statement,
        values: Option<&RecordBatch>,
        options: &WriteOptions,
    ) -> Result<Executed> {
        let (engine, default, statement) = (self.clone(), database.to_owned(), statement.clone());
        let given = options.clone();
        let has_values = values.is_some();
        let done = move || match crate::query::parse_change(&statement)? {
            query @ Change::InsertQuery { .. } => Ok(Err(query)),
            _ if has_values => {
                Err(Error::Sql { reason: "this statement has no placeholders, and takes no values".into() })
            }
            change => engine.execute_change(&default, change, &given).map(Ok),
        };
        match blocking(done).await? {
            Ok(executed) => Ok(executed),
            Err(Change::InsertQuery { database: named, table, columns, query }) => {
                let target = named.as_deref().unwrap_or(database);
                let insertion = Insertion::new(database, target, &table, &columns, &query);
                self.insert_query(insertion, values, options).await.map(Executed::Inserted)
            }
            Err(_) => Err(Error::internal("a statement is neither done nor a query")),
        }
    }

    fn execute_change(&self, database: &str, change: Change, options: &WriteOptions) -> Result<Executed> {
        self.writer()?;
        match change {
            Change::Delete { database: named, table, predicate } => {
                self.delete(named.as_deref().unwrap_or(database), &table, &predicate).map(Executed::Deleted)
            }
            Change::DropTable { database: named, table, if_exists } => {
                dropped(self.drop_table(named.as_deref().unwrap_or(database), &table), if_exists)
            }
            Change::DropDatabase { database, if_exists } => dropped(self.drop_database(&database), if_exists),
            Change::Insert { database: named, table, rows } => {
                self.insert(named.as_deref().unwrap_or(database), &table, &rows, options).map(Executed::Inserted)
            }
            Change::InsertQuery { .. } => Err(Error::internal("a query is run elsewhere")),
            Change::CreateDatabase { database, if_not_exists } => {
                created(self.create_database(&database), if_not_exists)
            }
            Change::CreateTable {
                database: named,
                table,
                has_primary_key,
                mut columns,
                plain_times,
                types,
                if_not_exists,
            } => {
                let database = named.as_deref().unwrap_or(database);
                let effective = types.clone().or(&self.effective_column_types(database, None));
                for index in plain_times {
                    if let Some(column) = columns.get_mut(index) {
                        column.data_type = effective.time_unit.unwrap_or_default().column_type();
                    }
                }
                let schema = TableSchema { database: database.into(), table: table.into(), has_primary_key, columns };
                created(self.create_table_with(&schema, &types), if_not_exists)
            }
            Change::CreateSnapshot { name, if_not_exists } => created(self.create_snapshot(&name), if_not_exists),
            Change::DropSnapshot { name, if_exists } => dropped(self.drop_snapshot(&name), if_exists),
            Change::Restore { database: named, table, to } => {
                let moment = match to {
                    RestorePoint::Snapshot(name) => PastMoment::Snapshot(name),
                    RestorePoint::Time(query) => PastMoment::Time(on_own_runtime(self.time_of(database, &query))?),
                };
                self.restore_table(named.as_deref().unwrap_or(database), &table, &moment).map(|()| Executed::Restored)
            }
        }
    }

    /// Returns what a statement would delete, `None` if it is another one that
    /// [`execute`](Self::execute) knows. The predicate is as the delete would apply it
    /// ([`check_delete`](Self::check_delete)).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use arc_core::Statement;
    ///
    /// let statement = Statement::parse("DELETE FROM pump WHERE id = '7'")?;
    /// if let Some(deletion) = engine.deletion("plant", &statement)? {
    ///     println!("rows of {} where {} would be gone", deletion.table, deletion.predicate);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute).
    pub fn deletion(&self, database: &str, statement: &Statement) -> Result<Option<Deletion>> {
        match crate::query::parse_change(statement)? {
            Change::Delete { database: named, table, predicate } => {
                let database = named.as_deref().unwrap_or(database);
                let predicate = self.check_delete(database, &table, &predicate)?;
                Ok(Some(Deletion::new(database, table, predicate)))
            }
            Change::DropTable { .. }
            | Change::DropDatabase { .. }
            | Change::Insert { .. }
            | Change::InsertQuery { .. }
            | Change::CreateDatabase { .. }
            | Change::CreateTable { .. }
            | Change::CreateSnapshot { .. }
            | Change::DropSnapshot { .. }
            | Change::Restore { .. } => Ok(None),
        }
    }
}

impl Engine {
    /// Runs a query for one time.
    async fn time_of(&self, database: &str, query: &str) -> Result<i64> {
        let not_a_time = || Error::Sql { reason: "AS OF takes one time that is not null".into() };
        let batches = self.sql(database, query).await?.collect().await?;
        let times = batches.first().map(|batch| batch.column(0).as_primitive_opt::<TimestampNanosecondType>());
        let times = times.flatten().filter(|times| times.len() == 1 && times.null_count() == 0);
        times.map(|times| times.value(0)).ok_or_else(not_a_time)
    }
}

fn created(result: Result<()>, if_not_exists: bool) -> Result<Executed> {
    match result {
        Ok(()) => Ok(Executed::Created),
        Err(Error::DatabaseExists { .. } | Error::TableExists { .. } | Error::SnapshotExists { .. })
            if if_not_exists =>
        {
            Ok(Executed::NothingToCreate)
        }
        Err(error) => Err(error),
    }
}

fn dropped(result: Result<()>, if_exists: bool) -> Result<Executed> {
    match result {
        Ok(()) => Ok(Executed::Dropped),
        Err(error) if if_exists && error.kind() == ErrorKind::NotFound => Ok(Executed::NothingToDrop),
        Err(error) => Err(error),
    }
}
