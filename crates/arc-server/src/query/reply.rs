//! Sends an answer while it comes from its query.
//!
//! Nothing is sent before the first chunk of the answer is there: what fails until then gets a status of its own, and a
//! short answer is sent whole. What fails later breaks the connection, so that nobody takes a part for the whole.

use std::{io, sync::Arc};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use hyper::header;

use super::runner::{Chunk, Running};
use crate::{app::App, errors::Failure, metrics::Counter};

/// Counts one query, however it ends; one that never ends was left by its client.
#[derive(Debug)]
pub(crate) struct Ticket {
    app: Arc<App>,
    disconnects: fn(&App) -> &Counter,
    open: bool,
}

impl Ticket {
    /// Counts a query as received; `disconnects` is where it counts if its client leaves.
    pub(crate) fn new(app: &Arc<App>, disconnects: fn(&App) -> &Counter) -> Self {
        app.metrics.queries.requests.add(1);
        Self { app: Arc::clone(app), disconnects, open: true }
    }

    pub(crate) fn failed(&mut self) {
        self.open = false;
        self.app.metrics.queries.failed.add(1);
    }

    pub(crate) fn succeeded(&mut self) {
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
#[derive(Debug)]
pub(super) struct Reply {
    query: Running<Chunk>,
    ticket: Ticket,
}

impl Reply {
    pub(super) fn new(query: Running<Chunk>, ticket: Ticket) -> Self {
        Self { query, ticket }
    }

    /// Returns the response, as soon as it is known how it begins.
    pub(super) async fn respond(mut self, content_type: &'static str) -> Result<Response, Failure> {
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
        Ok(([(header::CONTENT_TYPE, content_type)], body).into_response())
    }

    async fn chunk(&mut self) -> Result<Bytes, Failure> {
        match self.query.next().await {
            Ok(chunk) => {
                if chunk.is_last {
                    self.ticket.succeeded();
                }
                Ok(chunk.bytes)
            }
            Err(failure) => {
                self.ticket.failed();
                Err(failure)
            }
        }
    }
}

#[cfg(test)]
mod tests;
