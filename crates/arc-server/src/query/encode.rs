//! Turns the batches of an answer into chunks of bytes, whatever they are encoded as.
//!
//! Runs on the query threads. Never knows the client: chunks go where they are told, at the pace they are taken.

use std::sync::Arc;

use arrow::{array::RecordBatch, error::ArrowError};
use futures::{Stream, StreamExt};
use hyper::StatusCode;

use super::{
    layout,
    listed::Listed,
    runner::{Chunk, PieceSender},
};
use crate::errors::Failure;

/// Encoded bytes that are sent at a time, at least.
pub(super) const CHUNK_BYTES: usize = 64 << 10;
/// Rows that are encoded at a time, at most: a batch may have any number of rows.
pub(super) const STEP_ROWS: usize = 8192;
/// Bytes that are encoded at a time, at most, unless one row has more.
const STEP_BYTES: usize = 2 << 20;

/// Turns record batches into bytes.
pub(super) trait Encode: Send {
    /// Encodes some rows.
    fn append(&mut self, batch: &RecordBatch) -> Result<(), Failure>;

    /// Encodes some of what comes after the last row; returns whether that was all of it.
    fn finish(&mut self) -> Result<bool, Failure>;

    /// Returns the bytes that were encoded since they were last taken.
    fn encoded(&mut self) -> &mut Vec<u8>;
}

/// What encodes one answer.
pub(super) type Encoder = Box<dyn Encode>;

/// An answer that is being encoded.
pub(super) struct Encoding<S> {
    listed: Arc<Listed>,
    answer: S,
    encoder: Encoder,
    /// What is left of the last batch.
    rest: Option<RecordBatch>,
    /// Whether all rows are encoded.
    has_rows: bool,
}

impl<S: Stream<Item = arc_core::Result<RecordBatch>> + Unpin> Encoding<S> {
    pub(super) fn new(listed: &Arc<Listed>, answer: S, encoder: Encoder) -> Self {
        Self { listed: Arc::clone(listed), answer, encoder, rest: None, has_rows: true }
    }

    /// Encodes and sends everything, or as much as is wanted.
    pub(super) async fn send(mut self, chunks: PieceSender<Chunk>) -> Result<(), Failure> {
        loop {
            let is_last = self.fill().await?;
            let bytes = std::mem::take(self.encoder.encoded()).into();
            let gone = chunks.send(Ok(Chunk { bytes, is_last })).await.is_err();
            if is_last || gone {
                return Ok(());
            }
        }
    }

    /// Encodes until there is enough to send, or nothing more to come; returns whether it is that.
    async fn fill(&mut self) -> Result<bool, Failure> {
        while self.encoder.encoded().len() < CHUNK_BYTES {
            if self.has_rows
                && let Some(rows) = self.rows().await?
            {
                self.listed.count_rows(rows.num_rows())?;
                self.encoder.append(&rows)?;
            } else {
                self.has_rows = false;
                if self.encoder.finish()? {
                    return Ok(true);
                }
            }
            // What waits for its last row sends nothing for long: a query is ended at its time limit where it waits.
            tokio::task::yield_now().await;
        }
        Ok(false)
    }

    /// Returns the next rows, not too many of them.
    async fn rows(&mut self) -> Result<Option<RecordBatch>, Failure> {
        let batch = match self.rest.take() {
            Some(rest) => rest,
            None => match self.answer.next().await {
                Some(batch) => batch?,
                None => return Ok(None),
            },
        };
        let rows = step(&batch);
        if batch.num_rows() <= rows {
            return Ok(Some(batch));
        }
        self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
        Ok(Some(batch.slice(0, rows)))
    }
}

/// Returns how many rows of a batch are encoded at a time.
pub(super) fn step(batch: &RecordBatch) -> usize {
    let each = layout::size(batch) / batch.num_rows().max(1);
    STEP_BYTES.checked_div(each).unwrap_or(STEP_ROWS).clamp(1, STEP_ROWS)
}

/// Returns the failure for rows that have no form on the wire, which is a bug: what has none is refused at the start.
pub(super) fn unencodable(error: ArrowError) -> Failure {
    tracing::error!(%error, "an answer cannot be encoded");
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the answer cannot be encoded: {error}"))
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use arrow::{
        array::{ArrayRef, Int32DictionaryArray, Int64Array, RunArray, StringArray, StringViewArray, StructArray},
        datatypes::{Field, Int32Type},
    };
    use futures::{poll, stream};
    use tokio::sync::mpsc;

    use super::*;
    use crate::{
        auth::Caller,
        query::listed::{List, NewQuery},
    };

    /// An encoder that has nothing to send before its last row, as those of MessagePack and Parquet.
    #[derive(Default)]
    struct Waiting {
        steps: Arc<AtomicUsize>,
        out: Vec<u8>,
    }

    impl Encode for Waiting {
        fn append(&mut self, _: &RecordBatch) -> Result<(), Failure> {
            self.steps.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn finish(&mut self) -> Result<bool, Failure> {
            Ok(self.steps.fetch_add(1, Ordering::Relaxed) == 5)
        }

        fn encoded(&mut self) -> &mut Vec<u8> {
            &mut self.out
        }
    }

    #[tokio::test]
    async fn a_query_may_be_ended_between_any_two_steps() {
        let asked =
            NewQuery { door: "msgpack", caller: Caller::anybody(), database: "d", sql: "SELECT 1", most_rows: 10 };
        let listed = Arc::new(List::default()).add(asked);
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..3).map(|_| "x".repeat(STEP_BYTES))));
        let answer = stream::iter([Ok(RecordBatch::try_from_iter([("text", texts)]).unwrap())]);
        let encoder = Waiting::default();
        let steps = Arc::clone(&encoder.steps);
        let (sender, _chunks) = mpsc::channel(1);
        let mut sending = pin!(Encoding::new(&listed, answer, Box::new(encoder)).send(sender));
        for step in 1..=5 {
            assert!(poll!(&mut sending).is_pending());
            assert_eq!(steps.load(Ordering::Relaxed), step);
        }
        assert!(sending.await.is_ok());
    }

    #[test]
    fn rows_that_are_large_are_encoded_one_by_one() {
        for (bytes, rows, expected) in
            [(10, 10_000, STEP_ROWS), (1 << 20, 10, 1), (5 << 20, 2, 1), (1 << 10, 100, 1_900)]
        {
            let text = "x".repeat(bytes);
            let column: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|_| &text)));
            let batch = RecordBatch::try_from_iter([("text", column)]).unwrap();
            assert!(step(&batch).abs_diff(expected) < 150, "{bytes}: {}", step(&batch));
        }
        let long = StringArray::from_iter_values(["x".repeat(1 << 20)]);
        let view: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..10).map(|_| long.value(0))));
        let keyed: ArrayRef = Arc::new(Int32DictionaryArray::new(vec![0; 10].into(), Arc::new(long.clone())));
        let runs: ArrayRef = Arc::new(RunArray::<Int32Type>::try_new(&vec![10].into(), &long).unwrap());
        for column in [view, keyed, runs] {
            // That it is within another changes nothing.
            let field = Field::new("within", column.data_type().clone(), true);
            let within: ArrayRef = Arc::new(StructArray::new(vec![field].into(), vec![Arc::clone(&column)], None));
            let batch = RecordBatch::try_from_iter([("alone", column), ("within", within)]).unwrap();
            assert_eq!(step(&batch), 1, "{:?}", batch.schema());
        }
        let empty: ArrayRef = Arc::new(Int64Array::from_iter_values([]));
        assert_eq!(step(&RecordBatch::try_from_iter([("v", empty)]).unwrap()), STEP_ROWS);
    }
}
