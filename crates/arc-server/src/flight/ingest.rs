//! Rows that come in a stream: stored part by part, and acknowledged at its end, when all of them are durable.

use std::{collections::VecDeque, sync::Arc};

use arc_core::{ErrorKind, PendingWrite, WriteOptions};
use arrow_flight::sql::{CommandStatementIngest, TableExistsOption, TableNotExistOption};
use bytes::Bytes;
use hyper::{HeaderMap, StatusCode};
use tokio::task::JoinHandle;

use super::{
    actions,
    incoming::Incoming,
    parts::{PART_BYTES, Parts},
    status::unsupported,
    target,
};
use crate::{
    app::App,
    auth::{Caller, Rights},
    errors::Failure,
    http::params::Params,
    write::{self, Format},
};

/// Parts that may wait to be durable while further ones come in.
const PARTS_AHEAD: usize = 3;
/// What the kernel hands out at a time.
const PAGE_BYTES: usize = 4 << 10;
/// What an idempotency key may have besides the number of a part, in bytes.
const MAX_KEY_BYTES: usize = 240;

/// Where rows go, and how.
#[derive(Debug)]
pub(super) struct IngestTarget {
    pub(super) database: String,
    pub(super) table: String,
    pub(super) options: WriteOptions,
}

impl IngestTarget {
    /// Reads what a command asks for; what it does not say the headers may.
    pub(super) fn of(
        app: &App,
        caller: &Caller,
        asked: CommandStatementIngest,
        headers: &HeaderMap,
    ) -> Result<Self, Failure> {
        actions::no_transaction(asked.transaction_id.as_ref())?;
        target::check_catalog(asked.catalog.as_deref())?;
        if asked.temporary {
            return Err(unsupported("there are no temporary tables"));
        }
        let database = asked.schema.filter(|name| !name.is_empty());
        let database = database.map_or_else(|| target::database(headers), Ok)?;
        caller.check_table(Rights::WRITE, &database, &asked.table)?;
        let definition = asked.table_definition_options.unwrap_or_default();
        let is_there = is_there(app, &database, &asked.table)?;
        match (is_there, definition.if_exists(), definition.if_not_exist()) {
            (true, TableExistsOption::Fail, _) => {
                let text = format!("table {:?} exists already in database {database:?}", asked.table);
                return Err(Failure::new(StatusCode::CONFLICT, text));
            }
            (_, TableExistsOption::Replace, _) => {
                return Err(unsupported("a table is not replaced by a write; drop it first"));
            }
            (false, _, TableNotExistOption::Fail) => {
                return Err(arc_core::Error::TableNotFound { database, table: asked.table }.into());
            }
            _ => {}
        }
        let options = write::options(headers, &Params::of_options(asked.options)?)?;
        Ok(Self { database, table: asked.table, options })
    }
}

fn is_there(app: &App, database: &str, table: &str) -> Result<bool, Failure> {
    match app.engine.schema(database, table) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Stores all rows of a stream; returns how many, once they are durable.
pub(super) async fn run(app: &Arc<App>, target: IngestTarget, incoming: &mut Incoming) -> Result<u64, Failure> {
    app.check_takes_changes()?;
    app.metrics.write_started(Format::Arrow);
    if target.options.idempotency_key.as_ref().is_some_and(|key| key.len() > MAX_KEY_BYTES) {
        return Err(Failure::bad_request(format!("the idempotency key of a stream has up to {MAX_KEY_BYTES} bytes")));
    }
    let mut storing = Storing { app, target, parts: 0, pending: VecDeque::new(), rows: 0, new_rows: 0 };
    let result = storing.all(incoming).await;
    // Whatever failed, what was queued before is stored.
    let rest = storing.acknowledge(0).await;
    app.metrics.write_ended(Format::Arrow, storing.new_rows);
    match result.and(rest) {
        Ok(()) => Ok(storing.rows),
        Err(mut failure) if storing.rows > 0 => {
            failure.message = format!("{}; the first {} rows of the stream are stored", failure.message, storing.rows);
            Err(failure)
        }
        Err(failure) => Err(failure),
    }
}

/// A stream that is being stored.
struct Storing<'a> {
    app: &'a Arc<App>,
    target: IngestTarget,
    /// Parts that were handed to the engine.
    parts: usize,
    pending: VecDeque<PendingWrite>,
    /// Rows acknowledged, and those of them that were not stored before under the same key.
    rows: u64,
    new_rows: u64,
}

impl Storing<'_> {
    async fn all(&mut self, incoming: &mut Incoming) -> Result<(), Failure> {
        let mut parts = Parts::new(self.app.limits.body_bytes);
        let mut next = read(incoming, &mut parts, 0).await;
        let mut spare: Option<JoinHandle<Vec<u8>>> = None;
        while let Some(body) = next? {
            if let Some(spare) = spare.take() {
                parts.use_spare(spare.await.unwrap_or_default());
            }
            if self.parts > 0 && body.len() >= PART_BYTES {
                let bytes = Parts::expected(&body);
                spare = Some(tokio::task::spawn_blocking(move || touched(bytes)));
            }
            let beside = body.len();
            let (submitted, following) = futures::join!(self.submit(body), read(incoming, &mut parts, beside));
            self.pending.push_back(submitted?);
            self.parts += 1;
            self.acknowledge(PARTS_AHEAD).await?;
            next = following;
        }
        Ok(())
    }

    /// Hands a part to the engine.
    async fn submit(&self, body: Bytes) -> Result<PendingWrite, Failure> {
        let slot = self.app.write_slot().await?;
        let IngestTarget { database, table, options } = &self.target;
        let (database, table, mut options) = (database.clone(), table.clone(), options.clone());
        if let Some(key) = options.idempotency_key.as_mut().filter(|_| self.parts > 0) {
            *key = format!("{key}#{}", self.parts + 1);
        }
        let app = Arc::clone(self.app);
        // Decoding and waiting for room block, so they stay off the threads that serve connections.
        let submitted = tokio::task::spawn_blocking(move || {
            let submitted = app.engine.submit_arrow(&database, &table, body, &options);
            drop(slot);
            submitted.map_err(Failure::from)
        });
        submitted.await.map_err(|_| Failure::bug())?
    }

    /// Waits until no more than `ahead` parts wait to be durable; all that was queued is counted, whatever fails.
    async fn acknowledge(&mut self, ahead: usize) -> Result<(), Failure> {
        let mut result = Ok(());
        while self.pending.len() > ahead {
            let Some(pending) = self.pending.pop_front() else { break };
            match pending.await {
                Ok(written) => {
                    self.rows += written.points;
                    self.new_rows += if written.replayed { 0 } else { written.points };
                }
                Err(error) => result = result.and(Err(error.into())),
            }
        }
        result
    }
}

/// Reads until there is a part, `None` behind the last one.
async fn read(incoming: &mut Incoming, parts: &mut Parts, beside: usize) -> Result<Option<Bytes>, Failure> {
    while let Some(message) = incoming.next().await? {
        parts.read(incoming, message, beside).await?;
        if parts.is_full() {
            return Ok(parts.take());
        }
    }
    Ok(parts.take())
}

/// Returns empty memory for a part, half of which the kernel has handed out.
///
/// It clears each page when that is touched first, which takes four times as long as copying what has come. So for a stream of many
/// parts another thread does that for half of the part after the next one.
fn touched(bytes: usize) -> Vec<u8> {
    let mut memory = vec![0; bytes];
    memory.chunks_mut(PAGE_BYTES).take(bytes / PAGE_BYTES / 2).filter_map(<[u8]>::first_mut).for_each(|byte| *byte = 1);
    memory.clear();
    memory
}
