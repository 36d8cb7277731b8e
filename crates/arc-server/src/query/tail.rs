//! `GET /api/v1/tail`: the rows of a table as they are acknowledged, for as long as the client stays.
//!
//! Owns the life of such an answer: what it is asked for, that it ends where the caller's rights do, and that it tells why it
//! ends. The engine keeps the rows that wait, and ends the tail of a client that is too slow (decision 045).

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use arc_core::{Answer, Tail, time_of_text};
use arrow::{
    array::RecordBatch,
    datatypes::{Schema, SchemaRef},
    ipc::writer::StreamWriter,
};
use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use hyper::{
    HeaderMap, StatusCode, Version,
    header::{self, HeaderName, HeaderValue},
    http::request::Parts,
};
use serde_json::json;
use tokio::{
    runtime::Handle,
    sync::OwnedSemaphorePermit,
    time::{Interval, MissedTickBehavior, interval},
};

use super::{
    encode::{Encoder, step, unencodable},
    form::Form,
    listed::{Listed, NewQuery},
    reply::QUERY_ID,
    request::{Dialect, Shape},
};
use crate::{
    app::App,
    auth::{Caller, Rights},
    errors::Failure,
    http::params::{self, Params},
};

/// How often it is asked whether the caller may still read the table, and whether the server stops.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks without a row after which something is sent all the same: a client that is gone is noticed then, and a proxy keeps
/// the connection.
const QUIET_LOOKS: u32 = 10;

/// What is asked for.
#[derive(Debug)]
struct AskedTail {
    database: String,
    table: String,
    /// In nanoseconds since the epoch.
    since_ns: Option<i64>,
    form: Form,
}

impl AskedTail {
    fn read(parts: &Parts) -> Result<Self, Failure> {
        let params = Params::of(&parts.uri)?;
        let form = Form::asked(&parts.headers, &params, Form::Ndjson)?;
        // A client that asks for JSON has lines of it.
        let form = match form {
            Form::Json | Form::Ndjson => Form::Ndjson,
            Form::Arrow => Form::Arrow,
            other => {
                let text = format!("a tail has no format {:?}; expected ndjson or arrow", other.name());
                return Err(Failure::bad_request(text));
            }
        };
        if parts.version < Version::HTTP_11 {
            let text = "a tail needs HTTP/1.1, which can tell a broken answer from a whole one";
            return Err(Failure::new(StatusCode::HTTP_VERSION_NOT_SUPPORTED, text));
        }
        let table = params.get("table").or_else(|| params.get("measurement"));
        let table =
            table.ok_or_else(|| Failure::bad_request("the parameter table is missing; expected ?db=…&table=…"))?;
        let database = params::database(&parts.headers, &params, &["db", "database"])?.into_owned();
        Ok(Self { database, table: table.to_owned(), since_ns: params.get("since").map(time_ns).transpose()?, form })
    }
}

/// Reads a time: nanoseconds since the epoch, or RFC 3339.
fn time_ns(text: &str) -> Result<i64, Failure> {
    let is_number = text.strip_prefix('-').unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit());
    let time = if is_number { text.parse().ok() } else { time_of_text(text) };
    time.ok_or_else(|| {
        let expected = "a time such as 2026-01-31T12:00:00Z, or nanoseconds since the epoch, from 1677 to 2262";
        Failure::bad_request(format!("since={text} is not valid; expected {expected}"))
    })
}

/// `GET /api/v1/tail` with `db`, `table`, `since` and `format`.
pub(crate) async fn tail(State(app): State<Arc<App>>, caller: Caller, request: Request) -> Result<Response, Failure> {
    let (parts, _) = request.into_parts();
    let asked = AskedTail::read(&parts)?;
    caller.check_table(Rights::READ, &asked.database, &asked.table)?;
    let slot = app.tail_slot()?;
    let listed = app.queries.add(NewQuery {
        door: "tail",
        caller: caller.clone(),
        database: &asked.database,
        sql: &format!("TAIL {:?}", asked.table),
        // It has no end.
        most_rows: u64::MAX,
    });
    listed.unless_cancelled(listed.wait_for_own(None)).await??;
    listed.begin();
    // Compressed, rows would wait for others to be compressed with.
    let mut headers = parts.headers.clone();
    headers.remove(header::ACCEPT_ENCODING);
    let shape = Shape::new(asked.form, Dialect::Arc, &headers, parts.version)?;
    let (stored, tail) = open(&app, &asked).await.map_err(|error| caller.failure(error))?;
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let tailing = Tailing {
        app,
        caller,
        listed,
        asked,
        shape,
        stored,
        tail,
        rest: None,
        encoder: None,
        looks,
        quiet_looks: 0,
        is_over: false,
        _slot: slot,
    };
    tailing.respond()
}

/// Opens the tail on a thread that may wait: a server that only reads looks at files for it.
async fn open(app: &Arc<App>, asked: &AskedTail) -> arc_core::Result<(Option<Answer>, Tail)> {
    let (runtime, engine) = (Handle::current(), app.engine.clone());
    let (database, table, since_ns) = (asked.database.clone(), asked.table.clone(), asked.since_ns);
    let opened = tokio::task::spawn_blocking(move || match since_ns {
        None => engine.tail(&database, &table).map(|tail| (None, tail)),
        Some(since_ns) => {
            runtime.block_on(engine.tail_since(&database, &table, since_ns)).map(|(stored, tail)| (Some(stored), tail))
        }
    });
    opened.await.unwrap_or_else(|error| Err(arc_core::Error::Internal { reason: error.to_string() }))
}

/// An answer under way.
struct Tailing {
    app: Arc<App>,
    caller: Caller,
    listed: Arc<Listed>,
    asked: AskedTail,
    shape: Shape,
    /// The rows before the tail, while there are any.
    stored: Option<Answer>,
    tail: Tail,
    /// What is left of the last batch.
    rest: Option<RecordBatch>,
    /// What encodes rows with these columns.
    encoder: Option<(SchemaRef, Encoder)>,
    looks: Interval,
    quiet_looks: u32,
    is_over: bool,
    _slot: OwnedSemaphorePermit,
}

/// What has come.
enum Event {
    Rows(RecordBatch),
    Look,
    End(Failure),
}

impl Tailing {
    fn respond(mut self) -> Result<Response, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.shape.content_type()));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // Proxies that are nginx hold nothing back then.
        headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
        if let Ok(id) = HeaderValue::try_from(self.listed.id.to_string()) {
            headers.insert(QUERY_ID, id);
        }
        // The columns are told before there is a row.
        let schema = self.stored.as_ref().map_or_else(|| self.tail.schema(), Answer::schema);
        let first = self.with_encoder(&schema, |_| Ok(()))?;
        let first = stream::iter((!first.is_empty()).then_some(first));
        let rest = stream::unfold(self, |mut tailing| async move { Some((tailing.chunk().await?, tailing)) });
        let body = first.chain(rest).map(|bytes| Ok::<_, std::convert::Infallible>(Bytes::from(bytes)));
        Ok((headers, Body::from_stream(body)).into_response())
    }

    /// Returns what is sent next; `None` once it has ended.
    async fn chunk(&mut self) -> Option<Vec<u8>> {
        while !self.is_over {
            let encoded = match self.event().await {
                Event::Rows(rows) => self.encode(rows),
                Event::Look => self.look(),
                Event::End(failure) => Err(failure),
            };
            match encoded {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => return Some(bytes),
                Err(failure) => return Some(self.end(&failure)),
            }
        }
        None
    }

    async fn event(&mut self) -> Event {
        if let Some(rows) = self.rest.take() {
            return Event::Rows(rows);
        }
        while let Some(stored) = &mut self.stored {
            let next = tokio::select! {
                biased;
                failure = self.listed.cancelled() => return Event::End(failure),
                _ = self.looks.tick() => return Event::Look,
                rows = stored.next() => rows,
            };
            match next {
                Some(Ok(rows)) if rows.num_rows() > 0 => return Event::Rows(rows),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Event::End(self.caller.failure(error)),
                None => self.stored = None,
            }
        }
        tokio::select! {
            biased;
            failure = self.listed.cancelled() => Event::End(failure),
            _ = self.looks.tick() => Event::Look,
            rows = self.tail.next() => match rows {
                Some(Ok(rows)) => Event::Rows(rows),
                Some(Err(error)) => Event::End(self.caller.failure(error)),
                None => Event::End(Failure::bug()),
            },
        }
    }

    /// Encodes rows, not too many at once: the thread has other clients.
    fn encode(&mut self, rows: RecordBatch) -> Result<Vec<u8>, Failure> {
        self.quiet_looks = 0;
        let (count, all) = (step(&rows), rows.num_rows());
        self.rest = (count < all).then(|| rows.slice(count, all - count));
        let rows = rows.slice(0, count.min(all));
        self.listed.count_rows(rows.num_rows())?;
        self.with_encoder(&rows.schema(), |encoder| encoder.append(&rows))
    }

    /// Asks whether to go on; returns a sign of life if nothing was sent for long.
    fn look(&mut self) -> Result<Vec<u8>, Failure> {
        if self.app.is_closing() {
            return Err(Failure::busy("the tail has ended: the server is shutting down", Duration::from_secs(5)));
        }
        let AskedTail { database, table, form, .. } = &self.asked;
        self.app.auth.again(&self.caller)?.check_table(Rights::READ, database, table)?;
        self.quiet_looks += 1;
        if self.quiet_looks < QUIET_LOOKS {
            return Ok(Vec::new());
        }
        self.quiet_looks = 0;
        match (form, &self.encoder) {
            (Form::Arrow, Some((schema, _))) => {
                let nothing = RecordBatch::new_empty(Arc::clone(schema));
                self.with_encoder(&nothing.schema(), |encoder| encoder.append(&nothing))
            }
            _ => Ok(b"\n".to_vec()),
        }
    }

    /// Does something with what encodes rows of these columns, and returns what was encoded. Where the columns were other ones
    /// before, what was sent of these ends, and another stream begins.
    fn with_encoder(
        &mut self,
        schema: &SchemaRef,
        encode: impl FnOnce(&mut Encoder) -> Result<(), Failure>,
    ) -> Result<Vec<u8>, Failure> {
        let same = self.encoder.take_if(|(known, _)| known == schema);
        let (mut out, (known, mut encoder)) = match same {
            Some(same) => (Vec::new(), same),
            None => (self.finish()?, (Arc::clone(schema), self.shape.open(&self.app, schema, self.started())?)),
        };
        encode(&mut encoder)?;
        out.append(encoder.encoded());
        self.encoder = Some((known, encoder));
        Ok(out)
    }

    fn started(&self) -> Instant {
        Instant::now()
    }

    /// Returns the end of what was sent of the same columns.
    fn finish(&mut self) -> Result<Vec<u8>, Failure> {
        let Some((_, mut encoder)) = self.encoder.take() else { return Ok(Vec::new()) };
        while !encoder.finish()? {}
        Ok(std::mem::take(encoder.encoded()))
    }

    /// Returns the last that is sent: why it has ended.
    fn end(&mut self, failure: &Failure) -> Vec<u8> {
        self.is_over = true;
        self.listed.end();
        let mut out = self.finish().unwrap_or_default();
        let (error, status) = (&failure.message, failure.status.as_u16());
        match self.asked.form {
            Form::Arrow => match ending(error, status) {
                Ok(ending) => out.extend(ending),
                Err(failure) => tracing::warn!(error = failure.message, "a tail ends without its reason"),
            },
            _ => out.extend(format!("{}\n", json!({ "error": error, "status": status })).into_bytes()),
        }
        out
    }
}

/// Returns an Arrow stream without columns, whose metadata has the reason.
fn ending(error: &str, status: u16) -> Result<Vec<u8>, Failure> {
    let metadata = [("arc.error", error.to_owned()), ("arc.status", status.to_string())];
    let metadata: HashMap<String, String> = metadata.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let schema = Schema::new_with_metadata(Vec::<arrow::datatypes::FieldRef>::new(), metadata);
    let written = StreamWriter::try_new(Vec::new(), &schema).and_then(StreamWriter::into_inner);
    written.map_err(unencodable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_nanoseconds_or_rfc_3339() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-5", Some(-5)),
            ("1700000000000000000", Some(1_700_000_000_000_000_000)),
            ("1970-01-01T00:00:01Z", Some(1_000_000_000)),
            ("1970-01-01T01:00:00+01:00", Some(0)),
            ("99999999999999999999", None),
            ("yesterday", None),
            ("-", None),
            ("3000-01-01T00:00:00Z", None),
        ] {
            assert_eq!(time_ns(text).ok(), expected, "{text}");
        }
    }
}
