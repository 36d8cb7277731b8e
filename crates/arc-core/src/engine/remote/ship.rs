//! The thread that puts the log into the object store, for as long as somebody waits for it.
//!
//! One put at a time, of all frames since the last one up to the newest that is waited for, and no
//! more than one each `remote_interval`. Frames are read back from the log on disk, so that none is kept in
//! memory for it, and only what is synced is put: the log of this machine has all that the store
//! has. Never asks for a put whose number another group may have yet (decision 043).

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{RemoteAcks, Shared};
use crate::{
    Error, Result, SequenceNumber,
    catalog::ManifestEdit,
    crash::crash_point,
    engine::stats::Counters,
    model::WAL_DIR,
    remote_log::{Group, LogObjects, NotPut, RemoteLog},
    store::OpenStorage,
    sync::{
        self, Instant, Mutex,
        thread::{Builder, JoinHandle},
    },
    wal::{Frame, LogTail, TailEnd, body_checksum},
};

/// Bytes of frames from which on a group takes no more of them.
const GROUP_BYTES: usize = 8 << 20;

/// Pauses after puts that failed: the first, twice as long after each further one, up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(5);

/// What the engine has of the log in the store, besides those who wait for it.
#[derive(Debug)]
pub(in crate::engine) struct Shipping {
    objects: Arc<LogObjects>,
    /// Taken by the thread.
    log: Mutex<Option<RemoteLog>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The thread.
struct Shipper {
    shared: Arc<Shared>,
    log: RemoteLog,
    tail: LogTail,
    /// When the last put began.
    last_put: Option<Instant>,
    failures: u32,
}

/// Why nothing more can be put.
struct Ended(String);

impl Shipping {
    pub(in crate::engine) fn new(log: RemoteLog) -> Self {
        Self { objects: log.objects(), log: Mutex::new(Some(log)), thread: Mutex::default() }
    }
}

impl Shared {
    /// Starts the thread of an engine that has an object store.
    pub(in crate::engine) fn start_remote(self: &Arc<Self>) -> Result<()> {
        let Some(shipping) = &self.shipping else { return Ok(()) };
        let Some(log) = shipping.log.lock().take() else { return Ok(()) };
        let tail = LogTail::new(self.root.join(WAL_DIR), self.remote.stored());
        let shipper = Shipper { shared: Arc::clone(self), log, tail, last_put: None, failures: 0 };
        let thread = Builder::new().name("arc-remote".into()).spawn(move || shipper.run());
        let thread = thread.map_err(|e| Error::io("start a thread for", &self.root, e))?;
        *shipping.thread.lock() = Some(thread);
        Ok(())
    }

    /// Ends the thread: what is waited for is put once more, if the store answers.
    pub(in crate::engine) fn stop_remote(&self) {
        self.remote.stop();
        let thread = self.shipping.as_ref().and_then(|shipping| shipping.thread.lock().take());
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that puts the log into the object store has panicked");
        }
        self.remote.fail("the engine has stopped");
    }

    /// Notes that everything up to `seq` is in data files, and removes what the log in the store has
    /// of it.
    pub(in crate::engine) fn release_remote(&self, seq: SequenceNumber) {
        if let Some(shipping) = &self.shipping {
            self.remote.note_stored(seq);
            shipping.objects.release(seq);
        }
    }
}

/// If the thread dies, nobody must wait for it.
struct FailOnPanic<'a>(&'a RemoteAcks);

impl Drop for FailOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail("the thread that puts the log into the object store has panicked");
        }
    }
}

impl Shipper {
    fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let _fail = FailOnPanic(&shared.remote);
        loop {
            let interval = shared.options.remote_interval;
            let earliest = self.last_put.and_then(|last_put| last_put.checked_add(interval));
            let Some(wanted) = shared.remote.next(earliest) else { return };
            if let Err(Ended(reason)) = self.ship(wanted) {
                tracing::error!(reason, "the log cannot be put into the object store any more, writes are refused");
                shared.queue.close(&reason);
                shared.remote.fail(&reason);
                return;
            }
            if shared.remote.is_stopping() && self.failures > 0 {
                return;
            }
        }
    }

    /// Puts one group, of what comes next up to `wanted`.
    fn ship(&mut self, wanted: SequenceNumber) -> Result<(), Ended> {
        if let Err(error) = self.announce() {
            return self.come_back(&error);
        }
        let Some(group) = self.group(wanted)? else { return Ok(()) };
        while !self.put(&group)? {
            if self.shared.remote.is_stopping() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Has the manifest say that there is a log in the store, before there is.
    fn announce(&mut self) -> Result<()> {
        if self.log.is_known() {
            return Ok(());
        }
        let shared = &self.shared;
        let mut manifest = shared.manifest.lock_patiently()?;
        manifest.commit(ManifestEdit { remote_log: true, ..ManifestEdit::default() })?;
        drop(manifest);
        self.log.note_known();
        Ok(())
    }

    /// Reads frames back from the log on disk; nothing if they are flushed by now.
    fn group(&mut self, wanted: SequenceNumber) -> Result<Option<Group>, Ended> {
        loop {
            let stored = self.shared.remote.stored();
            if wanted <= stored {
                return Ok(None);
            }
            if self.tail.next() != stored.next() {
                self.tail.restart(stored);
            }
            let mut group = Group::new(self.log.writer().epoch, stored);
            let read = self.tail.read_until(self.shared.vfs.as_ref(), wanted, &mut |frame| {
                let body_crc = body_checksum(&frame.body);
                let (seq, kind) = (frame.seq, frame.kind);
                group.push(&Frame { seq, kind, meta: frame.meta, body: &frame.body, body_crc })?;
                Ok(group.bytes() < GROUP_BYTES)
            });
            match read {
                Ok(TailEnd::Reached) => return Ok(Some(group)),
                // Their segment was released, for they are in data files.
                Ok(TailEnd::Missing) if self.shared.remote.stored() > stored => {}
                Ok(TailEnd::Missing) => return Err(Ended(format!("frame {} is not in the log", self.tail.next()))),
                Err(error) => return Err(Ended(format!("the log cannot be read back: {error}"))),
            }
        }
    }

    /// Puts a group; returns whether it is there now. If not, the same one has to be put again.
    fn put(&mut self, group: &Group) -> Result<bool, Ended> {
        let begun = sync::now();
        self.last_put = Some(begun);
        let put = self.log.put(group);
        let counters = &self.shared.counters;
        let taken = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        counters.remote_put_ns.fetch_add(taken, Ordering::Relaxed);
        match put {
            Ok(()) => {
                crash_point("remote::put");
                Counters::add(&counters.remote_puts, 1);
                Counters::add(&counters.remote_bytes, group.bytes() as u64);
                self.failures = 0;
                self.shared.remote.note_stored(group.last_seq());
                Ok(true)
            }
            Err(NotPut::Fenced(takeover)) => Err(Ended(takeover.to_string())),
            Err(NotPut::Broken(error)) => {
                Err(Ended(format!("the log in the object store is not as it should be: {error}")))
            }
            Err(NotPut::Unknown(error)) => {
                Counters::add(&counters.remote_put_failures, 1);
                self.come_back(&error).map(|()| false)
            }
        }
    }

    /// Waits before the next try, and answers those who have waited for too long.
    fn come_back(&mut self, error: &Error) -> Result<(), Ended> {
        if let Some(reason) = self.shared.queue.closed().filter(|_| error.kind() == crate::ErrorKind::Closed) {
            return Err(Ended(reason));
        }
        let source = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
        let reason = format!("{error}{source}");
        tracing::warn!(%reason, "the log is not put into the object store; trying again");
        let patience = self.shared.storage.as_ref().map(OpenStorage::patience).unwrap_or_default();
        self.shared.remote.expire(patience, &reason);
        self.shared.remote.pause(FIRST_PAUSE.saturating_mul(1 << self.failures.min(10)).min(LAST_PAUSE));
        self.failures += 1;
        Ok(())
    }
}
