//! Sends an answer while it comes from the engine.
//!
//! Nothing is sent before the first part of the answer is there: what fails until then gets a status of its own, and a
//! short answer is sent whole. What fails later breaks the connection, so that nobody takes a part for the whole.

use std::{io, sync::Arc, time::Instant};

use arrow::{array::RecordBatch, datatypes::SchemaRef, error::ArrowError};
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use hyper::{HeaderMap, header};
use tokio::sync::OwnedSemaphorePermit;

use crate::{app::App, errors::Failure, metrics::Counter};

/// Encoded bytes that are sent at a time, at least.
const CHUNK_BYTES: usize = 64 << 10;
/// Rows that are encoded at a time, at most: a batch may have any number of rows.
const STEP_ROWS: usize = 8192;

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

/// Counts one query, however it ends; one that never ends was left by its client.
#[derive(Debug)]
pub(super) struct Ticket {
    app: Arc<App>,
    disconnects: fn(&App) -> &Counter,
    open: bool,
}

impl Ticket {
    pub(super) fn new<E: Encode>(app: &Arc<App>) -> Self {
        app.metrics.queries.requests.add(1);
        Self { app: Arc::clone(app), disconnects: E::disconnects, open: true }
    }

    pub(super) fn failed(&mut self) {
        self.open = false;
        self.app.metrics.queries.failed.add(1);
    }

    fn succeeded(&mut self) {
        self.open = false;
        self.app.metrics.queries.ok.add(1);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.open {
            (self.disconnects)(&self.app).add(1);
        }
    }
}

/// An answer under way.
pub(super) struct Reply<S, E> {
    answer: S,
    encoder: E,
    /// What is left of the last batch.
    rest: Option<RecordBatch>,
    ticket: Ticket,
    /// Leave to run; others wait for it.
    _slot: OwnedSemaphorePermit,
}

impl<S, E> Reply<S, E>
where
    S: Stream<Item = arc_core::Result<RecordBatch>> + Send + Unpin + 'static,
    E: Encode,
{
    pub(super) fn new(answer: S, encoder: E, ticket: Ticket, slot: OwnedSemaphorePermit) -> Self {
        Self { answer, encoder, rest: None, ticket, _slot: slot }
    }

    /// Returns the response, as soon as it is known how it begins.
    pub(super) async fn respond(mut self) -> Result<Response, Failure> {
        let first = self.chunk().await?;
        let body = if self.ticket.open {
            let rest = stream::try_unfold(self, |mut reply| async move {
                if !reply.ticket.open {
                    return Ok(None);
                }
                let chunk = reply.chunk().await.map_err(|failure| {
                    tracing::warn!(error = failure.message, "query failed after the answer had begun");
                    io::Error::other(failure.message)
                })?;
                Ok::<_, io::Error>(Some((chunk, reply)))
            });
            Body::from_stream(stream::once(async { Ok(first) }).chain(rest))
        } else {
            Body::from(first)
        };
        Ok(([(header::CONTENT_TYPE, E::CONTENT_TYPE)], body).into_response())
    }

    /// Encodes until there is enough to send, or nothing more to come.
    async fn chunk(&mut self) -> Result<Bytes, Failure> {
        let result = self.fill().await;
        if result.is_err() {
            self.ticket.failed();
        }
        result.map(|()| std::mem::take(self.encoder.encoded()).into())
    }

    async fn fill(&mut self) -> Result<(), Failure> {
        while self.encoder.encoded().len() < CHUNK_BYTES {
            let Some(rows) = self.rows().await? else {
                self.encoder.finish().map_err(unencodable)?;
                self.ticket.succeeded();
                break;
            };
            self.encoder.append(&rows).map_err(unencodable)?;
            self.ticket.app.metrics.queries.rows.add(u64::try_from(rows.num_rows()).unwrap_or_default());
        }
        Ok(())
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
    Failure::new(hyper::StatusCode::INTERNAL_SERVER_ERROR, format!("the answer cannot be encoded: {error}"))
}

#[cfg(test)]
mod tests;
