//! Turns the batches of an answer into chunks of bytes, whatever they are encoded as.
//!
//! Runs on the query threads. Never knows the client: chunks go where they are told, at the pace they are taken.

use std::{sync::Arc, time::Instant};

use arrow::{array::RecordBatch, datatypes::SchemaRef, error::ArrowError};
use futures::{Stream, StreamExt};
use hyper::{HeaderMap, StatusCode};

use super::runner::{Chunk, PieceSender};
use crate::{app::App, errors::Failure, metrics::Counter};

/// Encoded bytes that are sent at a time, at least.
pub(super) const CHUNK_BYTES: usize = 64 << 10;
/// Rows that are encoded at a time, at most: a batch may have any number of rows.
pub(super) const STEP_ROWS: usize = 8192;

/// Turns record batches into bytes.
pub(super) trait Encode: Sized + Send + 'static {
    /// The type of what comes out.
    const CONTENT_TYPE: &'static str;

    /// Returns the counter of clients that did not wait for such an answer.
    fn disconnects(app: &App) -> &Counter;

    /// Begins an answer with these columns, in the way that the request's headers ask for.
    fn open(headers: &HeaderMap, schema: &SchemaRef, started: Instant) -> Result<Self, Failure>;

    /// Encodes some rows.
    fn append(&mut self, batch: &RecordBatch) -> Result<(), ArrowError>;

    /// Encodes what comes after the last row.
    fn finish(&mut self) -> Result<(), ArrowError>;

    /// Returns the bytes that were encoded since they were last taken.
    fn encoded(&mut self) -> &mut Vec<u8>;
}

/// An answer that is being encoded.
pub(super) struct Encoding<S, E> {
    app: Arc<App>,
    answer: S,
    encoder: E,
    /// What is left of the last batch.
    rest: Option<RecordBatch>,
}

impl<S, E> Encoding<S, E>
where
    S: Stream<Item = arc_core::Result<RecordBatch>> + Unpin,
    E: Encode,
{
    pub(super) fn new(app: &Arc<App>, answer: S, encoder: E) -> Self {
        Self { app: Arc::clone(app), answer, encoder, rest: None }
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
            let Some(rows) = self.rows().await? else {
                self.encoder.finish().map_err(unencodable)?;
                return Ok(true);
            };
            self.encoder.append(&rows).map_err(unencodable)?;
            self.app.metrics.queries.rows.add(u64::try_from(rows.num_rows()).unwrap_or_default());
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
        if batch.num_rows() <= STEP_ROWS {
            return Ok(Some(batch));
        }
        self.rest = Some(batch.slice(STEP_ROWS, batch.num_rows() - STEP_ROWS));
        Ok(Some(batch.slice(0, STEP_ROWS)))
    }
}

fn unencodable(error: ArrowError) -> Failure {
    tracing::error!(%error, "an answer cannot be encoded");
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the answer cannot be encoded: {error}"))
}
