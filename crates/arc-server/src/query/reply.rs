//! Sends an answer while it comes from its query.
//!
//! Nothing is sent before the first chunk of the answer is there: what fails until then gets a status of its own, and a
//! short answer is sent whole. What fails later breaks the connection, so that nobody takes a part for the whole.

use std::{io, sync::Arc};

use arc_core::Statement;
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use hyper::{
    HeaderMap, StatusCode, Version,
    header::{self, HeaderName, HeaderValue},
};

use super::{
    form::Form,
    listed::Listed,
    request::Shape,
    runner::{Chunk, Running},
};
use crate::{app::App, auth::Caller, errors::Failure};

/// Names the query of an answer, as in the list of queries.
pub(super) const QUERY_ID: HeaderName = HeaderName::from_static("x-arc-query-id");

/// Counts one query, however it ends; one that never ends was left by its client.
#[derive(Debug)]
pub(crate) struct Ticket {
    app: Arc<App>,
    form: Form,
    caller: Caller,
    /// There once it is known what is asked.
    listed: Option<Arc<Listed>>,
    open: bool,
}

impl Ticket {
    /// Counts a query as received, whose answer is to have this form.
    pub(crate) fn new(app: &Arc<App>, form: Form, caller: Caller) -> Self {
        app.metrics.queries.requests.add(1);
        Self { app: Arc::clone(app), form, caller, listed: None, open: true }
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Puts the query on the list.
    pub(crate) fn list(&mut self, database: &str, sql: &str) -> Arc<Listed> {
        let listed = self.app.list_query(self.form.name(), &self.caller, database, sql);
        self.listed = Some(Arc::clone(&listed));
        listed
    }

    pub(crate) fn failed(&mut self, failure: &Failure) {
        self.open = false;
        let queries = &self.app.metrics.queries;
        let counter = match failure.status.as_u16() {
            504 => &queries.timed_out,
            499 => &queries.cancelled,
            _ => &queries.failed,
        };
        counter.add(1);
        if failure.status == StatusCode::INTERNAL_SERVER_ERROR {
            self.report(&failure.message);
        }
        self.end(&failure.message);
    }

    /// Says in the log what was asked where a fault of ours came of it, without its values.
    fn report(&self, error: &str) {
        let Some(listed) = &self.listed else { return };
        let shape = Statement::parse(&listed.sql).map(|statement| statement.shape()).unwrap_or_default();
        tracing::error!(query = %listed.id, format = listed.door, shape, error, "a statement met a fault");
    }

    pub(crate) fn succeeded(&mut self) {
        self.open = false;
        self.app.metrics.queries.ok.add(1);
        self.end("");
    }

    /// Counts what it gave, and says in the log if it took long.
    fn end(&self, error: &str) {
        let Some(listed) = &self.listed else { return };
        self.app.metrics.queries.rows.add(listed.rows());
        let took = listed.elapsed();
        if self.app.slow_query.is_some_and(|slow| took >= slow) {
            self.app.metrics.queries.slow.add(1);
            let (id, rows, ms) = (listed.id, listed.rows(), u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
            let (database, statement, format) = (&listed.database, &listed.sql, listed.door);
            let files = listed.files().unwrap_or_default();
            let (files_read, files_left_out) = (files.read, files.left_out);
            tracing::warn!(
                query = %id,
                ms,
                rows,
                files_read,
                files_left_out,
                database,
                statement,
                format,
                error,
                "slow query"
            );
        }
        listed.end();
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.open {
            self.app.metrics.queries.left(self.form);
            self.end("the client left");
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
    pub(super) async fn respond(mut self, shape: Shape) -> Result<Response, Failure> {
        let first = self.chunk().await?;
        let headers = self.headers(shape);
        if !self.ticket.open {
            return Ok((headers, first).into_response());
        }
        // Where a connection that ends is the end of the answer, nobody could tell that a part is missing.
        if shape.version < Version::HTTP_11 && !shape.form.shows_its_end() {
            let text =
                "an answer of this length and format needs HTTP/1.1, which can tell a broken answer from a whole one";
            let failure = Failure::new(StatusCode::HTTP_VERSION_NOT_SUPPORTED, text);
            self.ticket.failed(&failure);
            return Err(failure);
        }
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
        let body = Body::from_stream(stream::once(async { Ok(first) }).chain(rest));
        Ok((headers, body).into_response())
    }

    fn headers(&self, shape: Shape) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(shape.content_type()));
        if let Some(name) = shape.coding.name() {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(name));
        }
        headers.insert(header::VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
        let id = self.ticket.listed.as_ref().and_then(|listed| HeaderValue::try_from(listed.id.to_string()).ok());
        if let Some(id) = id {
            headers.insert(QUERY_ID, id);
        }
        headers
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
                self.ticket.failed(&failure);
                Err(failure)
            }
        }
    }
}

#[cfg(test)]
mod tests;
