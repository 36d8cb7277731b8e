//! The write path up to the queue: decode, check, register what is new, queue.
//!
//! A request is decoded against the schema of that moment without any lock. What it adds to the
//! schema is checked again under the schema lock; where another request came first it is decoded
//! again, so that what is queued is exactly what replay will decode.

use std::{
    borrow::Cow,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use arrow::array::{Array, RecordBatch};
use bytes::Bytes;
use futures::channel::oneshot;

use super::{
    frame::{FrameKind, KeyMeta, WriteMeta},
    idempotency::{Claimed, KeyClaim, answer, fingerprint},
    propose::Proposal,
    queue::{LoggedWrite, QueuedFrame, QueuedWrite},
    shared::Shared,
};
use crate::{
    AccessScope, ColumnTypes, Durability, Error, OnConflict, PendingWrite, Result, WriteOptions, Written,
    catalog::IdempotencyRecord,
    ingest::{self, Context, MAX_CELLS, Staged, Terms, TimeChecks, TypePolicy, UntimedPoints},
    memory::Pressure,
    model::TIME_COLUMN,
    registry::{Database, check_database_name, check_name, invalid_name},
};

/// What the messages of a batch have besides its values, more or less.
const MESSAGE_BYTES: usize = 1 << 10;
/// Most room to make for batches before they are encoded: dictionaries are counted with each, and
/// are there once.
const MAX_EXPECTED_BYTES: usize = 64 << 20;

/// What was accepted before is decoded without limits, out of bodies that may be part of something
/// larger.
const COPIED: Terms = Terms { most_bytes: usize::MAX, may_keep: false };

/// A request as it is logged.
#[derive(Debug, Clone)]
pub(super) struct WriteRequest {
    pub(super) kind: FrameKind,
    pub(super) body: Bytes,
    pub(super) meta: WriteMeta,
}

/// Decodes a request that was accepted before: the same function for live writes and replay, which
/// knows no limits.
pub(super) fn decode_logged(request: &WriteRequest, database: &Arc<Database>) -> Result<Staged> {
    decode(request, COPIED, &context(request, database, TypePolicy::Logged, usize::MAX))
}

/// Does as [`decode_logged`] where columns may have had other types than they have here.
pub(super) fn decode_widening(request: &WriteRequest, database: &Arc<Database>) -> Result<Staged> {
    let types = ColumnTypes::new().on_conflict(OnConflict::Widen);
    decode(request, COPIED, &context(request, database, TypePolicy::Settings(&types), usize::MAX))
}

fn decode(request: &WriteRequest, terms: Terms, context: &Context<'_>) -> Result<Staged> {
    match request.kind {
        FrameKind::LineProtocol => Ok(ingest::decode_lp_rows(&request.body, context)),
        FrameKind::MessagePack => ingest::decode_msgpack(&request.body, context),
        FrameKind::Arrow => {
            let table = request.meta.table.as_deref().unwrap_or_default();
            ingest::decode_arrow(&request.body, table, request.meta.time_column.as_deref(), terms, context)
        }
        FrameKind::Rows => ingest::decode_rows(&request.body, context),
        FrameKind::Database
        | FrameKind::Schema
        | FrameKind::Widened
        | FrameKind::Delete
        | FrameKind::Drop
        | FrameKind::GivenUp => Err(Error::internal("a schema change is not a write")),
    }
}

fn context<'r>(
    request: &'r WriteRequest,
    database: &'r Arc<Database>,
    types: TypePolicy<'r>,
    most_cells: usize,
) -> Context<'r> {
    Context {
        database,
        receive_ns: request.meta.receive_ns,
        precision: request.meta.precision(),
        tags: &request.meta.tags,
        skip: &request.meta.rejected,
        types,
        most_cells,
        times: TimeChecks::None,
    }
}

/// Refuses a request that has a table beyond its scope. Costs one look at each table, not at each
/// point.
fn check_scope(scope: &AccessScope, database: &str, staged: &Staged) -> Result<()> {
    let mut names = staged.tables.iter().map(|table| table.table.schema());
    match names.find(|schema| !scope.access().writes(database, &schema.table)) {
        Some(schema) => Err(Error::OutOfScope { database: database.to_owned(), table: schema.table.to_string() }),
        None => Ok(()),
    }
}

/// A request that is decoded, and what of it is written.
struct DecodedWrite {
    staged: Staged,
    written: Written,
    /// Lines or items that were rejected; replay passes over them.
    rejected: Vec<u64>,
}

/// What became of a write that was to be queued.
enum Pushed {
    Queued,
    /// Its tables have changed since it was decoded. Gives its claim back.
    Stale(Option<KeyClaim>),
}

impl Shared {
    /// Refuses what could be decoded for no table, whatever the request has.
    fn check_request(&self, request: &WriteRequest, options: &WriteOptions) -> Result<()> {
        let name = &request.meta.database;
        check_database_name(name).map_err(|reason| invalid_name("database", name, reason))?;
        check_tags(&request.meta)?;
        options.check()?;
        self.check_size(request.kind, request.body.len())
    }

    /// Decodes a request as the first of its database, and stores nothing.
    pub(super) fn check_write(&self, request: &WriteRequest, options: &WriteOptions) -> Result<()> {
        self.check_request(request, options)?;
        self.decode(request, &Arc::new(Database::new(&request.meta.database, 0, false))).map(drop)
    }

    /// Decodes and queues a request, unless it was stored before under its idempotency key.
    pub(super) fn submit(&self, mut request: WriteRequest, options: &WriteOptions) -> Result<PendingWrite> {
        self.check_request(&request, options)?;
        let name = &request.meta.database;
        let of_database = || *self.schema.registry().database(name)?.durability.read();
        let durability = options.durability.or_else(of_database).unwrap_or(self.options.durability);
        self.check_durability(durability)?;
        let mut claim = None;
        if let Some(key) = &options.idempotency_key {
            match self.claim(&request, key)? {
                Claimed::New(new) => claim = Some(new),
                Claimed::Waiting(answer) => return Ok(PendingWrite { answer }),
                Claimed::Kept(receipt) => return Ok(self.answer_kept(&request, &receipt)),
            }
            request.meta.idempotency = Some(KeyMeta { key: key.clone(), durability, request: None });
        }
        self.decode_and_queue(&request, options, durability, claim)
    }

    /// Decodes a request until what it adds to the schema is new, and queues it.
    fn decode_and_queue(
        &self,
        request: &WriteRequest,
        options: &WriteOptions,
        durability: Durability,
        mut claim: Option<KeyClaim>,
    ) -> Result<PendingWrite> {
        let max_wait = options.max_wait.unwrap_or(self.options.write_timeout);
        let mut request = Cow::Borrowed(request);
        let mut reserved_ns = untimed_ns(&request.body);
        loop {
            let database = self.database_to_write(&request.meta.database, max_wait)?;
            let decoded = self.decode_points(&request, &database, options, durability)?;
            let UntimedPoints { passed_ns, unit } = decoded.staged.untimed;
            if passed_ns > reserved_ns {
                let meta = &mut request.to_mut().meta;
                meta.clock_ns = meta.clock_ns.or(Some(meta.receive_ns));
                (meta.receive_ns, reserved_ns) = (self.receive_time(passed_ns, unit).0, passed_ns);
                continue;
            }
            if decoded.written.points == 0 {
                return Ok(self.refused(decoded.written, claim));
            }
            let (answer, receiver) = oneshot::channel();
            let (write, frame) = self.log_rows(&request, decoded, claim, answer)?;
            let proposal = self.schema.propose(&write.staged, max_wait)?;
            match self.push(write, frame, proposal, max_wait)? {
                Pushed::Queued => return Ok(PendingWrite { answer: receiver }),
                Pushed::Stale(unused) => claim = unused,
            }
        }
    }

    /// Returns the database of a write, or one that comes with it. Waits while a column is about to
    /// change its type.
    fn database_to_write(&self, name: &str, max_wait: Duration) -> Result<Arc<Database>> {
        loop {
            if let Some(reason) = self.queue.closed() {
                return Err(Error::Closed { reason });
            }
            let database = self.schema.registry().database(name);
            let database = database.unwrap_or_else(|| Arc::new(Database::new(name, self.clock.now_ns(), false)));
            if database.type_changes.load(Ordering::Acquire).is_multiple_of(2) {
                return Ok(database);
            }
            // The thread that decides that has the lock.
            drop(self.schema.lock_within(max_wait)?);
        }
    }

    /// Decodes a request and says what is written of it.
    fn decode_points(
        &self,
        request: &WriteRequest,
        database: &Arc<Database>,
        options: &WriteOptions,
        durability: Durability,
    ) -> Result<DecodedWrite> {
        let mut staged = self.decode(request, database)?;
        if let Some(scope) = &options.scope {
            let name = &request.meta.database;
            if !staged.tables.is_empty() && self.schema.registry().database(name).is_none() {
                return Err(Error::DatabaseOutOfScope { database: name.clone() });
            }
            check_scope(scope, name, &staged)?;
        }
        staged.tables.retain(|table| !table.is_empty());
        let rejections = std::mem::take(&mut staged.rejections);
        let refuses_all = options.whole && !rejections.numbers.is_empty();
        let written = Written {
            points: if refuses_all { 0 } else { staged.points() as u64 },
            rejected_points: rejections.numbers.len() as u64,
            rejected: rejections.first,
            durability,
            replayed: false,
        };
        Ok(DecodedWrite { staged, written, rejected: rejections.numbers })
    }

    /// Answers a request of which nothing is written.
    fn refused(&self, written: Written, claim: Option<KeyClaim>) -> PendingWrite {
        super::stats::Counters::add(&self.counters.rejected_points, written.rejected_points);
        if let Some(claim) = claim {
            claim.refused(&written);
        }
        PendingWrite::answered(written)
    }

    /// Makes of decoded points what is queued, and the frame that is logged of them, if any.
    fn log_rows(
        &self,
        request: &WriteRequest,
        DecodedWrite { staged, written, rejected }: DecodedWrite,
        claim: Option<KeyClaim>,
        answer: oneshot::Sender<Result<Written>>,
    ) -> Result<(QueuedWrite, Option<QueuedFrame>)> {
        let (durability, received_bytes, row_bytes) = (written.durability, request.body.len(), staged.bytes());
        // Once, where rows lie in it.
        let body_bytes = if staged.hold_body() { 0 } else { received_bytes };
        self.check_size(request.kind, body_bytes + row_bytes)?;
        let is_logged = durability != Durability::Memory;
        let frame = is_logged.then(|| self.write_frame(request, &staged, rejected)).transpose()?;
        let rows = frame.as_ref().filter(|frame| frame.body.as_ptr() != request.body.as_ptr());
        let body_bytes = rows.map_or(body_bytes, |frame| frame.body.len());
        let write = QueuedWrite { staged, durability, written, received_bytes, body_bytes, row_bytes, claim, answer };
        Ok((write, frame))
    }

    /// Decodes a new request, on several threads if it is large and they have nothing else to do.
    pub(super) fn decode(&self, request: &WriteRequest, database: &Arc<Database>) -> Result<Staged> {
        let _at_work = self.decode_pool.at_work();
        let context = self.context(request, database);
        if request.kind == FrameKind::LineProtocol {
            // For each write that is queued there is a caller with a core of its own, or with the
            // next write soon.
            let others = || self.queue.writes();
            return Ok(ingest::decode_lp_parallel(&request.body, &context, &self.decode_pool, others));
        }
        decode(request, Terms { most_bytes: self.most_bytes(), may_keep: true }, &context)
    }

    /// Asks what to do about a request with an idempotency key.
    fn claim(&self, request: &WriteRequest, key: &str) -> Result<Claimed> {
        if let Some(reason) = self.queue.closed() {
            return Err(Error::Closed { reason });
        }
        self.keys.claim(&request.meta.database, key, fingerprint(request), request.meta.receive_ns)
    }

    /// Answers a request that is stored already. What was refused is not kept; as the request is
    /// the same, decoding it again tells.
    pub(super) fn answer_again(&self, request: &WriteRequest, receipt: &IdempotencyRecord) -> Written {
        let mut written = answer(receipt);
        if written.rejected_points > 0
            && let Some(database) = self.schema.registry().database(&request.meta.database)
            && let Ok(staged) = decode(request, COPIED, &self.context(request, &database))
            && staged.rejections.numbers.len() as u64 == written.rejected_points
        {
            written.rejected = staged.rejections.first;
        }
        written
    }

    /// Queues a write with what it adds to the schema, once there is memory for it.
    fn push(
        &self,
        write: QueuedWrite,
        frame: Option<QueuedFrame>,
        mut proposal: Proposal<'_>,
        max_wait: Duration,
    ) -> Result<Pushed> {
        if matches!(proposal, Proposal::Stale) {
            return Ok(Pushed::Stale(write.claim));
        }
        let cost = write.cost();
        let reserve = |queued: usize| {
            let buffered = self.counters.buffered_bytes.load(Ordering::Relaxed);
            let held = queued + buffered;
            // What is larger than all room that there is goes alone.
            let is_taken = (held == 0 || held + cost <= self.options.max_buffer_bytes)
                && self.memory.pressure() < Pressure::Critical
                && self.memory.try_take(cost);
            if !is_taken && buffered > 0 {
                self.flush_signal.note_write(true);
            }
            is_taken
        };
        let logged = LoggedWrite { changes: proposal.take_changes(), frame, write };
        let stale = self.queue.push(logged, max_wait, reserve, |write| proposal.publish(write))?;
        Ok(stale.map_or(Pushed::Queued, |write| {
            // Its room was taken, and it does not stay.
            self.memory.give(cost);
            Pushed::Stale(write.claim)
        }))
    }

    /// Returns what a new request is decoded with.
    fn context<'r>(&'r self, request: &'r WriteRequest, database: &'r Arc<Database>) -> Context<'r> {
        let defaults = &self.options.column_types;
        let (has_unit, has_finer) = database.has_units(defaults);
        let times = TimeChecks::new(has_unit, has_finer);
        Context { times, ..context(request, database, TypePolicy::Settings(defaults), MAX_CELLS) }
    }

    /// Returns the memory that one write may take with its points.
    fn most_bytes(&self) -> usize {
        self.options.memory_bytes / 4
    }

    /// Refuses what could not be held in memory, however long it waits.
    fn check_size(&self, kind: FrameKind, bytes: usize) -> Result<()> {
        let most = self.most_bytes();
        if bytes <= most {
            return Ok(());
        }
        let format = match kind {
            FrameKind::LineProtocol => "line protocol",
            FrameKind::MessagePack => "MessagePack",
            _ => "Arrow",
        };
        let reason = format!(
            "with its points it takes {bytes} bytes of memory, and one write may take {most}, a quarter of memory_bytes; \
             send it in smaller parts"
        );
        Err(Error::InvalidPayload { format, reason })
    }
}

/// Returns the nanoseconds that points without a time take at most, where their tables have no unit:
/// no point takes less than four bytes in any format.
pub(super) fn untimed_ns(body: &Bytes) -> i64 {
    i64::try_from(body.len() / 4 + 1).unwrap_or(i64::MAX)
}

/// Checks the tags that a columnar write declares.
fn check_tags(meta: &WriteMeta) -> Result<()> {
    let time = meta.time_column.as_deref().unwrap_or(TIME_COLUMN);
    meta.tags.iter().try_for_each(|tag| {
        let is_time = [TIME_COLUMN, time].contains(&tag.as_str());
        let checked = if is_time { Err("it is the time column") } else { check_name(tag) };
        checked.map_err(|reason| invalid_name("tag", tag, reason))
    })
}

/// Returns the stream that is logged of an Arrow IPC stream or file.
pub(super) fn arrow_stream(body: &Bytes) -> Result<Bytes> {
    ingest::arrow_stream_of_file(body).map_err(|reason| Error::InvalidPayload { format: "Arrow", reason })
}

/// Makes the request for record batches of one schema: their Arrow IPC stream is what is logged.
pub(super) fn arrow_body(batches: &[RecordBatch]) -> Result<Bytes> {
    let invalid = |reason: String| Error::InvalidPayload { format: "Arrow", reason };
    let first = batches.first().ok_or_else(|| invalid("there is no record batch".into()))?;
    if let Some(other) = batches.iter().find(|batch| batch.schema() != first.schema()) {
        return Err(invalid(format!("the batches have different schemas: {} and {}", first.schema(), other.schema())));
    }
    // Grown by doubling it would be copied, and take fresh pages, twice.
    let sizes = batches.iter().flat_map(RecordBatch::columns).map(|column| column.to_data().get_slice_memory_size());
    let bytes = sizes.map(Result::unwrap_or_default).fold(MESSAGE_BYTES * batches.len(), usize::saturating_add);
    let body = Vec::with_capacity(bytes.min(MAX_EXPECTED_BYTES));
    let mut writer = arrow::ipc::writer::StreamWriter::try_new(body, &first.schema())?;
    batches.iter().try_for_each(|batch| writer.write(batch))?;
    let mut body = writer.into_inner()?;
    // Rows may stay in it, and what lies unused after it with them.
    body.shrink_to_fit();
    Ok(Bytes::from(body))
}
