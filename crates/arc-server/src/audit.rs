//! Who changed what, and when: a row of the table `audit` of the database `_internal` for each request that changes more than
//! points, asked for like any other table by those who may do everything.
//!
//! What a request was let do its [`Caller`] knows ([`Trail`]); the row says that and what became of it. It is written before
//! the request is answered, and also when its client goes away meanwhile. No request writes to the database, or deletes from
//! it. Nothing is kept where nobody has to log in: nobody has a name there.

use std::sync::{Arc, Mutex, PoisonError};

use arc_core::Engine;
use arrow::{
    array::{ArrayRef, Int64Array, RecordBatch, StringArray},
    error::ArrowError,
};
use hyper::{Method, StatusCode};

use crate::{auth::Caller, timestamp};

/// The database of what the server keeps for itself.
pub(crate) const INTERNAL: &str = "_internal";
const TABLE: &str = "audit";
/// Longest text of a change that is kept; statements can be longer.
const MAX_CHANGE_BYTES: usize = 4 << 10;

/// What one request was let change, in the order it asked.
#[derive(Debug, Default)]
pub(crate) struct Trail(Mutex<Vec<String>>);

impl Trail {
    /// Notes a change.
    pub(crate) fn note(&self, change: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(change.into());
    }

    /// Returns all changes as one text, if there are any.
    fn text(&self) -> Option<String> {
        let changes = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut text = changes.join("; ");
        if text.len() > MAX_CHANGE_BYTES {
            text.truncate(text.floor_char_boundary(MAX_CHANGE_BYTES));
            text.push('…');
        }
        (!text.is_empty()).then_some(text)
    }
}

/// A request under way that may change something.
#[derive(Debug)]
pub(crate) struct Audited {
    engine: Engine,
    caller: Caller,
    method: Method,
    path: String,
    request: String,
}

impl Audited {
    /// Begins to watch a request of `caller`; `None` for one that changes nothing, has nobody to name, or comes to a reader.
    pub(crate) fn begin(
        engine: &Engine,
        caller: Option<&Caller>,
        (method, path): (&Method, &str),
        id: &str,
    ) -> Option<Self> {
        if method.is_safe() || engine.is_reader() {
            return None;
        }
        let caller = caller?.clone();
        caller.trail()?;
        let (engine, request) = (engine.clone(), id.to_owned());
        Some(Self { engine, caller, method: method.clone(), path: path.to_owned(), request })
    }

    /// Writes down what the request was let change, and what it is answered.
    pub(crate) async fn end(self, status: StatusCode) {
        if let Some(row) = self.row(Some(status)) {
            // What goes wrong is in the log, also if the thread that wrote it died.
            let _ = tokio::task::spawn_blocking(move || row.write()).await;
        }
    }

    fn row(&self, status: Option<StatusCode>) -> Option<AuditRow> {
        let (token, change) = (self.caller.token()?, self.caller.trail()?.text()?);
        Some(AuditRow {
            engine: self.engine.clone(),
            token_id: i64::try_from(token.id).unwrap_or(i64::MAX),
            token: token.name.clone(),
            change,
            method: self.method.to_string(),
            path: self.path.clone(),
            status: status.map(|status| status.as_u16().into()),
            request: self.request.clone(),
        })
    }
}

impl Drop for Audited {
    /// The client has gone, and what it asked for may have been done all the same.
    fn drop(&mut self) {
        if let Some(row) = self.row(None)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn_blocking(move || row.write());
        }
    }
}

/// One row of the table.
#[derive(Debug)]
struct AuditRow {
    engine: Engine,
    token_id: i64,
    token: String,
    change: String,
    method: String,
    path: String,
    status: Option<i64>,
    request: String,
}

impl AuditRow {
    fn write(&self) {
        let written = self.batch().map_err(|error| error.to_string()).and_then(|batch| {
            self.engine.write_batch(INTERNAL, TABLE, &batch).map_err(|error| crate::errors::chain(&error))
        });
        if let Err(error) = written {
            let Self { token, change, path, request, .. } = self;
            tracing::error!(error, token, change, path, request, "cannot write down a change in the audit log");
        }
    }

    fn batch(&self) -> Result<RecordBatch, ArrowError> {
        let text = |text: &str| Arc::new(StringArray::from(vec![text])) as ArrayRef;
        // Nothing finer than its table takes.
        let unit = self.engine.effective_column_types(INTERNAL, Some(TABLE)).time_unit.unwrap_or_default();
        let now = timestamp::now_ns();
        let time = now - now % unit.nanoseconds();
        RecordBatch::try_from_iter([
            ("time", Arc::new(Int64Array::from(vec![time])) as ArrayRef),
            ("token_id", Arc::new(Int64Array::from(vec![self.token_id]))),
            ("token", text(&self.token)),
            ("change", text(&self.change)),
            ("method", text(&self.method)),
            ("path", text(&self.path)),
            ("status", Arc::new(Int64Array::from(vec![self.status]))),
            ("request", text(&self.request)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trail_is_told_once_and_bounded() {
        let trail = Trail::default();
        assert_eq!(trail.text(), None);
        trail.note("write database \"plant\"");
        trail.note("ü".repeat(MAX_CHANGE_BYTES));
        let text = trail.text().unwrap();
        assert!(text.starts_with("write database \"plant\"; üü") && text.ends_with("ü…"), "{text}");
        assert!(text.len() <= MAX_CHANGE_BYTES + '…'.len_utf8());
        assert_eq!(trail.text(), None, "what was told is not told again");
    }
}
