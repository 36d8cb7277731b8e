//! Opening a data directory: lock, marker, manifest, orphans, log; then the threads start.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use hashbrown::HashSet;

use super::{
    apply, commit, compaction,
    compactor::Compactor,
    context::EngineContext,
    cuts::Cuts,
    delete::replay_delete,
    dropping::{replay_drop, replay_forget},
    flush,
    flush_signal::FlushSignal,
    folders::EngineFolders,
    frame::{self, DatabaseMeta, FrameKind, KeyMeta, WriteMeta},
    history::{self, Past},
    idempotency::{IdempotencyKeys, fingerprint},
    leftovers::Leftovers,
    log::EngineLog,
    manifest::EngineManifest,
    queue::Queue,
    remote::{self, RemoteAcks},
    retired::Retired,
    schema::EngineSchema,
    shared::Shared,
    stats::Counters,
    tail::Tails,
    unflushed::Unflushed,
    write::{WriteRequest, decode_logged},
};
#[cfg(feature = "object-store")]
use super::{claim::ManifestClaim, remote::ship::Shipping};
#[cfg(feature = "object-store")]
use crate::store::{LogMount, OpenStorage, OwnerLog};
use crate::{
    Error, Options, Result, SequenceNumber,
    catalog::{
        FoundHistory, HistoryWindow, IdempotencyRecord, Manifest, ManifestState, check_has_no_store, check_layout,
        check_marker, decode_schema, oldest_leased, open_layout,
    },
    clock::Clock,
    crash::crash_point,
    datafile::{ClearedOrphans, SetAside, find_readable, remove_orphans},
    ingest::{DecodePool, Encoders, Staged},
    memory::{MemoryBudget, series_cache_share},
    model::{LOCK_FILE, META_DIR, WAL_DIR, WRITER, stored_path},
    random::RandomSource,
    registry::{Database, Registry, Table},
    store::{FolderLocation, file_name},
    vfs::Vfs,
    wal::{LogIdentity, ReplayedFrame, Wal, WalOptions},
};

/// What came through the builder.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) root: PathBuf,
    pub(super) options: Options,
    pub(super) vfs: Arc<dyn Vfs>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn RandomSource>,
    #[cfg(feature = "object-store")]
    pub(super) storage: Option<OpenStorage>,
    /// Who is asked for the log, if that is on another machine. For readers.
    #[cfg(feature = "object-store")]
    pub(super) owner: Option<Arc<dyn OwnerLog>>,
}

impl Parts {
    /// Refuses options that an engine that writes cannot have.
    fn check(&self) -> Result<()> {
        #[cfg(feature = "object-store")]
        if self.owner.is_some() {
            let reason = "it is for an engine that only reads; one that writes has a log of its own".into();
            return Err(Error::InvalidOption { option: "owner_log", reason });
        }
        check_options(&self.options)?;
        remote::check_durability(self.options.durability, self.has_store())
    }

    /// Returns the file system with data files and manifest where they are.
    pub(super) fn mounted(&self) -> Arc<dyn Vfs> {
        #[cfg(feature = "object-store")]
        if let Some(storage) = &self.storage {
            let mounted = storage.mount(Arc::clone(&self.vfs), &self.root);
            return match &self.owner {
                Some(log) => Arc::new(LogMount::new(mounted, &self.root, Arc::clone(log))),
                None => mounted,
            };
        }
        Arc::clone(&self.vfs)
    }

    /// Makes of it what the engine lends to its owners; `vfs` is the mounted one.
    fn into_context(self, vfs: Arc<dyn Vfs>) -> EngineContext {
        let options = self.options.within_budget();
        EngineContext {
            memory: Arc::new(MemoryBudget::new(options.memory_bytes, options.max_resident_bytes)),
            next_receive_ns: self.clock.now_ns().into(),
            root: self.root,
            options,
            vfs,
            #[cfg(feature = "object-store")]
            storage: self.storage,
            clock: self.clock,
            random: self.random,
            counters: Counters::default(),
        }
    }

    /// Returns whether data files and manifest are in an object store.
    fn has_store(&self) -> bool {
        #[cfg(feature = "object-store")]
        return self.storage.is_some();
        #[cfg(not(feature = "object-store"))]
        false
    }

    /// Opens the manifest where it is. Nothing else can write to it then.
    #[cfg_attr(not(feature = "object-store"), expect(unused_variables, reason = "only an object store is mounted"))]
    fn open_manifest(&self, mounted: &dyn Vfs, window: HistoryWindow) -> Result<(Manifest, FoundHistory)> {
        let (local, root) = (self.vfs.as_ref(), self.root.as_path());
        #[cfg(feature = "object-store")]
        if let Some(storage) = &self.storage {
            OpenStorage::clear(local, root)?;
            let (clock, random) = (self.clock.as_ref(), self.random.as_ref());
            return ManifestClaim { storage, vfs: mounted, local, root, clock, random, window }.open();
        }
        check_has_no_store(local, root)?;
        Manifest::open_keeping(
            Arc::new(FolderLocation::new(Arc::clone(&self.vfs), &root.join(META_DIR).join(WRITER))),
            Some(window),
        )
    }
}

/// Exclusive use of a data directory, until dropped.
pub(crate) type Lock = Box<dyn std::any::Any + Send + Sync>;

/// An engine that is ready but for its threads.
pub(super) fn open(parts: Parts) -> Result<(Arc<Shared>, Lock)> {
    parts.check()?;
    let vfs = parts.mounted();
    let (root, clock) = (parts.root.as_path(), parts.clock.as_ref());
    // Before the lock file is made, so that a folder of another thread stays as it is.
    check_layout(vfs.as_ref(), root)?;
    vfs.create_dir_all(root).map_err(|e| Error::io("create folder", root, e))?;
    let lock = lock(vfs.as_ref(), root)?;
    open_layout(vfs.as_ref(), root)?;
    let log_is_marked = check_marker(vfs.as_ref(), root)?;
    let now_ns = clock.now_ns();
    let window = history::window(&parts.options, now_ns, new_name(parts.random.as_ref(), now_ns));
    let (mut manifest, found) = parts.open_manifest(vfs.as_ref(), window)?;
    let context = Arc::new(parts.into_context(vfs));
    let EngineContext { options, memory, .. } = context.as_ref();
    history::begin(&mut manifest, options, now_ns)?;
    let mut registry = registry_of(manifest.state());
    registry.bound_series_caches(series_cache_share(options.memory_bytes), memory);
    let keys = IdempotencyKeys::new(options.idempotency_keys, options.idempotency_window, manifest.state());
    let OpenedLog {
        wal,
        stored,
        #[cfg(feature = "object-store")]
        shipping,
    } = open_log(&context, &manifest, &registry, &keys)?;
    // After the log: one that lacks what the manifest does not have refuses to be opened, and then
    // nothing is removed.
    let queue = Arc::new(Queue::new());
    let folders = Arc::new(EngineFolders::new(Arc::clone(&context), Arc::clone(&queue)));
    let retired = Arc::new(Retired::new(Arc::clone(&context), Arc::clone(&folders)));
    clear_orphans(&context, &manifest, &found, (&folders, &retired))?;
    crash_point("open::orphans_removed");
    let identity = LogIdentity { directory: manifest.state().directory.clone(), opening: manifest.number() };
    let shared = Shared {
        schema: EngineSchema::new(Arc::clone(&context), Arc::clone(&queue), registry),
        past: Past::new(&manifest, found.kept),
        cuts: Cuts::of(manifest.state()),
        manifest: EngineManifest::new(Arc::clone(&context), Arc::clone(&queue), Arc::clone(&retired), manifest),
        queue,
        tails: Tails::default(),
        decode_pool: DecodePool::new(),
        encoders: Encoders::default(),
        keys: Arc::new(keys),
        log: EngineLog::new(Arc::clone(&context), wal, log_is_marked, identity),
        unflushed: Unflushed::default(),
        leftovers: Leftovers::new(Arc::clone(&folders)),
        remote: RemoteAcks::new(stored),
        #[cfg(feature = "object-store")]
        shipping,
        folders,
        retired,
        flush_signal: FlushSignal::default(),
        compactor: Compactor::default(),
        context,
    };
    shared.retired.add_past(found.files);
    note_replayed(&shared);
    Ok((Arc::new(shared), lock))
}

/// The log as an opening has found it.
struct OpenedLog {
    wal: Wal,
    /// The last frame that the object store has, in its log or in data files.
    stored: SequenceNumber,
    #[cfg(feature = "object-store")]
    shipping: Option<Shipping>,
}

/// Opens the log, with what it has applied as the live path did; what only an object store has of it
/// is taken from there.
fn open_log(
    context: &EngineContext,
    manifest: &Manifest,
    registry: &Registry,
    keys: &IdempotencyKeys,
) -> Result<OpenedLog> {
    let EngineContext { root, options, vfs, random, counters, .. } = context;
    let dir = root.join(WAL_DIR);
    let kept = history::kept_log(options, manifest);
    let wal_options = WalOptions { segment_bytes: options.wal_segment_bytes, random: Arc::clone(random), kept };
    let mut visit = |frame: ReplayedFrame<'_>| {
        let damaged = |reason| Error::corrupt(&dir, 0, format!("frame {}: {reason}", frame.seq));
        replay(registry, counters, keys, &frame).map_err(damaged)
    };
    let flushed = manifest.state().flushed;
    let wal = Wal::open(Arc::clone(vfs), &dir, wal_options, flushed, &mut visit)?;
    #[cfg(feature = "object-store")]
    if let Some(storage) = &context.storage {
        let mut wal = wal;
        let (log, stored) = remote::replay::open(storage, manifest, &mut wal, &mut visit)?;
        return Ok(OpenedLog { wal, stored, shipping: Some(Shipping::new(log)) });
    }
    Ok(OpenedLog {
        wal,
        stored: flushed,
        #[cfg(feature = "object-store")]
        shipping: None,
    })
}

/// Counts the rows of the log, which are in memory already, whatever the limit.
fn note_replayed(shared: &Shared) {
    let replayed_bytes = shared.counters.buffered_bytes.load(std::sync::atomic::Ordering::Relaxed);
    shared.memory.take(replayed_bytes);
    shared.unflushed.note_applied(replayed_bytes);
    let replayed = shared.counters.read();
    if replayed.replayed_frames > 0 {
        tracing::info!(frames = replayed.replayed_frames, points = replayed.replayed_points, "replayed the log");
        shared.note_buffered();
        shared.flush_signal.note_synced();
    }
}

/// Removes what no manifest names, but for files of older states that can be asked for, and those that
/// another process may read: these go like those that are replaced while the directory is open. Puts
/// files where they belong that a crash has left elsewhere.
fn clear_orphans(
    context: &EngineContext,
    manifest: &Manifest,
    found: &FoundHistory,
    (folders, retired): (&EngineFolders, &Retired),
) -> Result<()> {
    let (vfs, root, now_ns) = (context.vfs.as_ref(), context.root.as_path(), context.clock.now_ns());
    retired.note_commit(manifest.number());
    let set_aside = |paths: &[PathBuf]| {
        let mut lost = SetAside::new(vfs, root);
        paths.iter().try_for_each(|path| lost.keep(path))?;
        lost.sync()
    };
    let named = manifest.state().stored_paths();
    let past: HashSet<&str> = found.files.iter().map(|past| file_name(stored_path(&past.path))).collect();
    let is_read = !found.is_damaged && oldest_leased(vfs, root, now_ns).is_some();
    let mut readable = if is_read { find_readable(vfs, root, &named)? } else { Vec::new() };
    readable.retain(|path| !past.contains(file_name(path)));
    let kept: HashSet<&str> = readable.iter().map(|path| file_name(path)).collect();
    // A file that nothing names may be one of an older state that cannot be read.
    let is_kept = |path: &str| found.is_damaged || kept.contains(file_name(path));
    let ClearedOrphans { removed, stray, away, gone } = remove_orphans(vfs, root, &named, &past, is_kept, set_aside)?;
    forget_incomplete(manifest, found, &gone);
    for orphan in removed {
        tracing::info!(file = orphan, "removed a file that no manifest names");
    }
    drop(kept);
    folders.give_back(away.iter().map(String::as_str));
    retired.add_paths(readable, now_ns);
    retired.add_stray(stray);
    retired.move_out();
    Ok(())
}

/// Forgets older states that have a file which is not there: they were given up when it was removed, or
/// the setting was another one then.
fn forget_incomplete(manifest: &Manifest, found: &FoundHistory, gone: &[String]) {
    let gone: HashSet<&str> = gone.iter().map(String::as_str).collect();
    let are_gone = found.files.iter().filter(|past| gone.contains(file_name(stored_path(&past.path))));
    if let Some(number) = are_gone.map(|past| past.number).max().filter(|number| *number > 0) {
        tracing::info!(files = gone.len(), "files of older states are not there any more: history begins after these");
        manifest.history().forget_up_to(number);
    }
}

/// Starts the threads of an engine.
pub(super) fn start(shared: &Arc<Shared>) -> Result<Vec<crate::sync::thread::JoinHandle<()>>> {
    let failed = |e| Error::io("start a thread for", &shared.root, e);
    let mut threads = commit::spawn(shared).map_err(failed)?;
    threads.push(flush::spawn(shared).map_err(failed)?);
    if shared.options.compaction {
        threads.push(compaction::spawn(shared).map_err(failed)?);
    }
    #[cfg(feature = "object-store")]
    shared.start_remote()?;
    Ok(threads)
}

/// Returns a name that no other directory has.
fn new_name(random: &dyn RandomSource, now_ns: i64) -> ulid::Ulid {
    let bits = (u128::from(random.next()) << 64) | u128::from(random.next());
    ulid::Ulid::from_parts(u64::try_from(now_ns / 1_000_000).unwrap_or(0), bits)
}

fn check_options(options: &Options) -> Result<()> {
    options.column_types.check()?;
    let least = |option: &'static str, value: u64, least: u64| {
        let reason = || format!("{value} is too small, it must be at least {least}");
        if value < least { Err(Error::InvalidOption { option, reason: reason() }) } else { Ok(()) }
    };
    least("wal_segment_bytes", options.wal_segment_bytes, 64 << 10)?;
    least("memory_bytes", options.memory_bytes as u64, 16 << 20)?;
    least("flush_bytes", options.flush_bytes as u64, 1)?;
    least("flush_wal_bytes", options.flush_wal_bytes, 1)?;
    least("idempotency_keys", options.idempotency_keys as u64, 1)?;
    least("compaction_files", options.compaction_files as u64, 2)?;
    least("compaction_file_bytes", options.compaction_file_bytes, 1)?;
    least("max_buffer_bytes", options.max_buffer_bytes as u64, options.flush_bytes as u64)?;
    least("query_memory_bytes", options.query_memory_bytes as u64, 1 << 20)
}

/// Takes exclusive use of a data directory.
pub(crate) fn lock(vfs: &dyn Vfs, root: &Path) -> Result<Lock> {
    let path = root.join(LOCK_FILE);
    vfs.lock(&path).map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock => Error::InUse { path: root.to_owned() },
        _ => Error::io("lock", path, e),
    })
}

/// Returns the tables that the manifest names, with no rows but those in files.
pub(super) fn registry_of(manifest: &ManifestState) -> Registry {
    let registry = Registry::default();
    for (name, state) in &manifest.databases {
        let database = Database::new(name, state.created_ns, true);
        database.retention.set_ns(state.retention_ns);
        *database.durability.write() = state.durability;
        database.set_column_types(None, state.column_types.clone());
        for state in state.tables.values() {
            let table = Table::with_files(Arc::clone(&state.schema), state.files.clone(), false);
            table.retention.set_ns(state.retention_ns);
            database.set_column_types(Some(&table), state.column_types.clone());
            let mut stored = table.stored();
            stored.tombstones.clone_from(&state.tombstones);
            stored.tombstones_flushed = manifest.flushed;
            drop(stored);
            database.add(Arc::new(table));
        }
        registry.add(Arc::new(database));
    }
    registry
}

/// Applies one frame of the log, as the live path did.
fn replay(
    registry: &Registry,
    counters: &Counters,
    keys: &IdempotencyKeys,
    frame: &ReplayedFrame<'_>,
) -> Result<(), String> {
    Counters::add(&counters.replayed_frames, 1);
    let Some((request, staged)) = decode_frame(registry, frame)? else {
        if frame.kind == FrameKind::Drop as u8 {
            replay_forget(keys, frame)?;
        }
        return Ok(());
    };
    if let Some(KeyMeta { key, durability, request: of_request }) = &request.meta.idempotency {
        let receipt = IdempotencyRecord {
            key: key.as_str().into(),
            seq: frame.seq,
            time_ns: request.meta.receive_ns,
            request: of_request.unwrap_or_else(|| fingerprint(&request)),
            points: staged.points() as u64,
            rejected_points: request.meta.rejected.len() as u64,
            durability: *durability,
        };
        keys.restore(Arc::clone(&staged.database.name), receipt);
    }
    Counters::add(&counters.replayed_points, staged.points() as u64);
    let held_bytes = apply::apply_rows(frame.seq, staged).map_err(|e| e.to_string())?;
    counters.buffered_bytes.fetch_add(held_bytes, std::sync::atomic::Ordering::Relaxed);
    Ok(())
}

/// Makes the change of schema that a frame says, or decodes its rows. The error is the reason why
/// it is damaged.
pub(super) fn decode_frame(
    registry: &Registry,
    frame: &ReplayedFrame<'_>,
) -> Result<Option<(WriteRequest, Staged)>, String> {
    let kind = FrameKind::from_byte(frame.kind).ok_or_else(|| format!("unknown kind {}", frame.kind))?;
    match kind {
        FrameKind::Database => {
            let meta: DatabaseMeta = frame::decode(frame.meta)?;
            if registry.database(&meta.name).is_none() {
                registry.add(Arc::new(Database::new(&meta.name, meta.created_ns, false)));
            }
            Ok(None)
        }
        FrameKind::Schema | FrameKind::Widened => replay_schema(registry, &frame.body).map(|()| None),
        FrameKind::Delete => replay_delete(registry, frame).map(|()| None),
        FrameKind::Drop => replay_drop(registry, frame).map(|()| None),
        FrameKind::GivenUp => Ok(None),
        FrameKind::LineProtocol | FrameKind::MessagePack | FrameKind::Arrow | FrameKind::Rows => {
            let meta: WriteMeta = frame::decode(frame.meta)?;
            let database = registry.database(&meta.database).ok_or("its database was never created")?;
            let request = WriteRequest { kind, body: frame.body.clone(), meta };
            let staged = decode_write(&request, &database)?;
            Ok(Some((request, staged)))
        }
    }
}

fn replay_schema(registry: &Registry, body: &[u8]) -> Result<(), String> {
    let schema = Arc::new(decode_schema(body)?);
    let database = registry.database(&schema.database).ok_or("its database was never created")?;
    match database.table(&schema.table) {
        None => database.add(Arc::new(Table::with_files(schema, Vec::new(), true))),
        Some(table) => {
            let current = table.schema();
            // Otherwise a flush has put this schema, or a later one, into the manifest already.
            if *schema != *current && schema.continues(&current) {
                table.set_schema(schema);
            }
        }
    }
    Ok(())
}

/// Decodes the rows of a frame, whose database and columns are there. The error is the reason why
/// it is damaged.
pub(super) fn decode_write(request: &WriteRequest, database: &Arc<Database>) -> Result<Staged, String> {
    let staged = decode_logged(request, database).map_err(|e| e.to_string())?;
    if let Some(rejected) = staged.rejections.first.first() {
        return Err(format!("line {} was accepted and is rejected now: {}", rejected.line, rejected.reason));
    }
    let unknown = |table: &&crate::ingest::StagedTable| {
        !table.is_empty()
            && (table.changes_schema()
                || !database.table(table.name()).is_some_and(|known| Arc::ptr_eq(&known, &table.table)))
    };
    if let Some(table) = staged.tables.iter().find(unknown) {
        return Err(format!("table {:?} has columns whose schema change is missing", table.name()));
    }
    Ok(staged)
}
