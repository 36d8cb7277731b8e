//! A tail with the rows before it that are not older than some time.

use arrow::{
    array::{ArrayRef, RecordBatch, TimestampNanosecondArray},
    datatypes::{DataType, Field, Schema},
};
use std::sync::Arc;

use super::Tail;
use crate::{
    Engine, Result,
    query::{Answer, Statement},
};

impl Engine {
    /// Returns the rows of a table whose time is `since_ns` or later, as they are now and in order of
    /// time, and a tail of what is acknowledged from this very moment on: no row is in neither, and
    /// none in both. `since_ns` is in nanoseconds since the epoch, and says nothing of the tail,
    /// which has rows of any time.
    ///
    /// Take the answer first: meanwhile the tail fills, as far as it may. Must be called on a tokio
    /// runtime with its timer enabled.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let engine = arc_core::Engine::open(dir.path().join("data"))?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use futures::StreamExt;
    ///
    /// let (stored, mut tail) = engine.tail_since("plant", "pump", 1_600_000_000_000_000_000).await?;
    /// let _ = engine.write_lp("plant", b"pump,id=7 rpm=1451i")?;
    /// assert_eq!(stored.collect().await?[0].num_rows(), 1);
    /// assert_eq!(tail.next().await.expect("one more")?.num_rows(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`tail`](Self::tail), and as [`sql`](Self::sql) of the rows that are stored.
    pub async fn tail_since(&self, database: &str, table: &str, since_ns: i64) -> Result<(Answer, Tail)> {
        let query = self.inner.query()?;
        let (tail, view) = self.open_tail(database, table, crate::registry::Table::view)?;
        let quoted = [database, table].map(|name| format!("\"{}\"", name.replace('"', "\"\""))).join(".");
        let statement = Statement::parse(&format!("SELECT * FROM {quoted} WHERE time >= $1 ORDER BY time"))?;
        let stored = query.of_view(view, &statement, &one_time(since_ns)?).await?;
        Ok((stored, tail))
    }
}

fn one_time(time_ns: i64) -> Result<RecordBatch> {
    let times = TimestampNanosecondArray::from(vec![time_ns]).with_timezone("UTC");
    let times: ArrayRef = Arc::new(times);
    let schema = Schema::new(vec![Field::new("since", DataType::clone(times.data_type()), false)]);
    Ok(RecordBatch::try_new(Arc::new(schema), vec![times])?)
}
