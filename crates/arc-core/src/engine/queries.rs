//! SQL that reads, as callers ask it.

use arrow::array::RecordBatch;

use super::Engine;
use crate::{Answer, Description, Result, Statement, StatementKind};

impl Engine {
    /// Runs one SQL statement; names without a database resolve in `database`.
    ///
    /// Must be called, and the answer read, on a tokio runtime. Sees every point that was
    /// acknowledged before.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// let answer = engine.sql("plant", "SELECT id, avg(rpm) AS rpm FROM pump GROUP BY id").await?;
    /// let batches = answer.collect().await?;
    /// assert_eq!(batches[0].num_rows(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a statement that does not
    /// plan or is not allowed; [`NotFound`](crate::ErrorKind::NotFound) for an unknown table;
    /// [`Closed`](crate::ErrorKind::Closed).
    pub async fn sql(&self, database: &str, sql: &str) -> Result<Answer> {
        self.query(database, &Statement::parse(sql)?, None).await
    }

    /// Runs one SQL statement with `values` for its placeholders, as [`sql`](Self::sql) does for
    /// one without any.
    ///
    /// `values` has one row. `$1`, `$2` and so on are its columns in order, and so are the `?` of a
    /// statement that has these instead; `$name` is the column of that name.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use std::sync::Arc;
    ///
    /// use arrow::array::{ArrayRef, RecordBatch, StringArray};
    ///
    /// let ids: ArrayRef = Arc::new(StringArray::from(vec!["7"]));
    /// let values = RecordBatch::try_from_iter([("id", ids)])?;
    /// let answer = engine.sql_with("plant", "SELECT * FROM pump WHERE id = $id", &values).await?;
    /// assert_eq!(answer.collect().await?[0].num_rows(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sql`](Self::sql), and [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if
    /// there is not one value for each placeholder.
    pub async fn sql_with(&self, database: &str, sql: &str, values: &RecordBatch) -> Result<Answer> {
        self.query(database, &Statement::parse(sql)?, Some(values)).await
    }

    /// Runs a statement that reads, as [`sql_with`](Self::sql_with) and [`sql`](Self::sql) do with
    /// its text.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use arc_core::Statement;
    ///
    /// let statement = Statement::parse("SELECT * FROM pump")?;
    /// if !statement.kind().is_change() {
    ///     let answer = engine.query("plant", &statement, None).await?;
    ///     assert_eq!(answer.schema().fields().len(), 3); // time, id and rpm
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sql_with`](Self::sql_with).
    pub async fn query(&self, database: &str, statement: &Statement, values: Option<&RecordBatch>) -> Result<Answer> {
        self.check_open()?;
        let query = self.inner.query()?;
        query.sql(database, statement, values).await
    }

    /// Plans one SQL statement without running it. Without `values` its placeholders stay open. Of
    /// the statements that change data it knows `INSERT`, whose columns are those of its rows.
    ///
    /// Must be called on a tokio runtime.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use arc_core::Statement;
    ///
    /// let statement = Statement::parse("SELECT rpm FROM pump WHERE id = $1")?;
    /// let described = engine.describe("plant", &statement, None).await?;
    /// assert_eq!(described.columns.field(0).name(), "rpm");
    /// assert_eq!(described.parameters.field(0).name(), "$1");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sql_with`](Self::sql_with).
    pub async fn describe(
        &self,
        database: &str,
        statement: &Statement,
        values: Option<&RecordBatch>,
    ) -> Result<Description> {
        self.check_open()?;
        if statement.kind() == StatementKind::Insert {
            return self.describe_insert(database, statement, values).await;
        }
        let query = self.inner.query()?;
        query.describe(database, statement, values).await
    }
}
