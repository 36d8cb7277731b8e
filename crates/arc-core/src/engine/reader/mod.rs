//! An engine that reads a data directory which another process writes.
//!
//! Owns the order of looking: what is acknowledged first, then the manifest, then the log up to
//! what is acknowledged; whoever asks after a write was acknowledged finds it, and no look ever
//! goes back. Takes no lock of the directory and writes nothing there but its lease. Rows that are
//! in no data file yet come from the log, frame by frame, as an opening would replay them
//! (decision 034).

#[cfg(feature = "object-store")]
mod bucket;
mod following;
mod log_follower;
mod origin;
#[cfg(feature = "object-store")]
mod owner;
mod past;
mod version;

use std::{path::PathBuf, sync::Arc, time::Duration};

pub(super) use self::version::Pin;
use self::{following::Following, log_follower::LogFollower, version::Version};
use super::{history::from_ns, open::Parts, states_at_hand::StatesAtHand};
#[cfg(feature = "object-store")]
use crate::store::OpenStorage;
use crate::{
    Error, Options, Result,
    catalog::{Manifest, ReadLease, check_has_no_store, check_marker},
    clock::Clock,
    memory::MemoryBudget,
    model::{MARKER, META_DIR, WAL_DIR, WRITER},
    random::RandomSource,
    registry::Registry,
    sync::{self, Condvar, Mutex},
    vfs::Vfs,
    wal::LogTail,
};

/// How often the lease is renewed: a few times before it ends.
const RENEW_EVERY: Duration = Duration::from_secs(10);

/// What a reader has, but for its thread.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) root: PathBuf,
    pub(super) options: Options,
    pub(super) memory: Arc<MemoryBudget>,
    vfs: Arc<dyn Vfs>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn RandomSource>,
    following: Mutex<Following>,
    /// What was seen last.
    seen: Mutex<Arc<Version>>,
    at_hand: StatesAtHand,
    follower: LogFollower,
    /// Whether rows that are in no data file yet can be seen.
    has_log: bool,
    #[cfg(feature = "object-store")]
    pub(super) storage: Option<OpenStorage>,
    is_stopped: Mutex<bool>,
    stopped: Condvar,
}

impl Reader {
    /// Opens a directory that another process may write to meanwhile.
    pub(super) fn open(parts: Parts) -> Result<Arc<Self>> {
        let (vfs, (manifest, has_log)) = (parts.mounted(), follow(&parts)?);
        let lease = lease(&parts, &vfs);
        #[cfg(feature = "object-store")]
        let owner = parts.owner;
        let Parts { root, options, clock, random, .. } = parts;
        let options = options.within_budget();
        let memory = Arc::new(MemoryBudget::new(options.memory_bytes, options.max_resident_bytes));
        let tail = LogTail::new(root.join(WAL_DIR), manifest.state().flushed);
        let following = Following::new(Arc::clone(&vfs), manifest, tail, lease, Arc::clone(&memory));
        #[cfg(feature = "object-store")]
        let following = match owner {
            None if parts.storage.is_some() && has_log => following.beside_log(),
            owner => following.of_owner(owner),
        };
        let seen = Mutex::new(Arc::new(Version::empty(Arc::clone(&memory))));
        let reader = Self {
            root,
            options,
            memory,
            vfs,
            clock,
            random,
            following: Mutex::new(following),
            seen,
            at_hand: StatesAtHand::default(),
            follower: LogFollower::default(),
            has_log,
            #[cfg(feature = "object-store")]
            storage: parts.storage,
            is_stopped: Mutex::new(false),
            stopped: Condvar::default(),
        };
        match reader.pin() {
            // Nodes are started in any order; each query asks again.
            Err(error @ Error::OwnerUnreachable { .. }) => tracing::warn!(%error, "nothing can be read yet"),
            pinned => drop(pinned?),
        }
        Ok(Arc::new(reader))
    }

    /// Looks, and returns the tables as they are now; they stay so until the pin is dropped.
    pub(super) fn pin(&self) -> Result<Pin> {
        let mut following = self.following.lock();
        let version = following.look(self.clock.now_ns(), &self.options)?;
        *self.seen.lock() = Arc::clone(&version);
        // With the lock held: nothing changes a version that is about to be pinned.
        Ok(Pin::new(version))
    }

    /// Returns the newest commit, and the last frame, that were seen.
    pub(super) fn progress(&self) -> (u64, u64) {
        let following = self.following.lock();
        (following.number(), following.seen().0)
    }

    /// Returns the tables as they were at the last look that succeeded, for those who cannot fail.
    pub(super) fn seen(&self) -> Arc<Registry> {
        Arc::clone(&self.seen.lock().registry)
    }

    /// Looks, and returns the tables; the last that were seen if that fails.
    pub(super) fn seen_now(&self) -> Arc<Registry> {
        if let Err(error) = self.pin() {
            tracing::warn!(%error, "cannot look at what another process writes");
        }
        self.seen()
    }

    /// Starts the thread that renews the lease.
    pub(super) fn start(self: &Arc<Self>) -> Result<sync::thread::JoinHandle<()>> {
        let reader = Arc::clone(self);
        let thread = sync::thread::Builder::new().name("arc-reader".into());
        thread.spawn(move || reader.run()).map_err(|e| Error::io("start a thread for", &self.root, e))
    }

    fn run(&self) {
        while self.wait() {
            if let Err(error) = self.renew() {
                tracing::warn!(%error, "cannot follow the manifest; the next query tries again");
            }
        }
    }

    /// Renews the lease for what is read now.
    pub(super) fn renew(&self) -> Result<()> {
        let now_ns = self.clock.now_ns();
        self.at_hand.forget_before(from_ns(&self.options, now_ns), now_ns);
        let mut following = self.following.lock();
        let renewed = following.renew(now_ns);
        // A reader that nobody asks keeps no rows, and no files that the manifest has no more.
        if let Some(version) = following.at_rest(&self.options) {
            *self.seen.lock() = version;
        }
        renewed
    }

    /// Waits until the lease has to be renewed; false once stopped.
    fn wait(&self) -> bool {
        let (mut is_stopped, until) = (self.is_stopped.lock(), sync::now() + RENEW_EVERY);
        while !*is_stopped && !self.stopped.wait_until(&mut is_stopped, until).timed_out() {}
        !*is_stopped
    }

    pub(super) fn stop(&self) {
        #[cfg(feature = "object-store")]
        if let Some(storage) = &self.storage {
            storage.abort_waits();
        }
        *self.is_stopped.lock() = true;
        self.stopped.notify_all();
        self.following.lock().end();
        self.follower.close();
    }
}

/// Returns the lease of a reader, where the files are held that it reads.
fn lease(parts: &Parts, vfs: &Arc<dyn Vfs>) -> ReadLease {
    let id = parts.random.next();
    #[cfg(feature = "object-store")]
    if let Some(log) = &parts.owner {
        return ReadLease::at_owner(Arc::clone(log), id);
    }
    ReadLease::new(Arc::clone(vfs), &parts.root, id)
}

/// Opens the manifest where it is. Returns with it whether the log is at hand.
fn follow(parts: &Parts) -> Result<(Manifest, bool)> {
    let (vfs, root) = (&parts.vfs, parts.root.as_path());
    #[cfg(feature = "object-store")]
    if let Some(storage) = &parts.storage {
        let (manifest, has_log) = bucket::follow(storage, vfs.as_ref(), root)?;
        if parts.owner.is_some() && has_log {
            return Err(owner::has_own_log(root));
        }
        return Ok((manifest, has_log || parts.owner.is_some()));
    }
    #[cfg(feature = "object-store")]
    if parts.owner.is_some() {
        let reason = "the process that writes is asked for its log, so its object store has to be named".into();
        return Err(Error::InvalidOption { option: "owner_log", reason });
    }
    check_is_readable(vfs.as_ref(), root)?;
    Ok((Manifest::follow(Arc::clone(vfs), &root.join(META_DIR).join(WRITER))?, true))
}

/// Checks that there is a data directory of a format that this build reads. Changes nothing.
fn check_is_readable(vfs: &dyn Vfs, root: &std::path::Path) -> Result<()> {
    match check_marker(vfs, root) {
        Err(Error::Io { source, .. })
            if [std::io::ErrorKind::NotFound, std::io::ErrorKind::NotADirectory].contains(&source.kind()) =>
        {
            let reason = format!("it has no file {MARKER}; a reader makes none");
            return Err(Error::NotADataDirectory { path: root.into(), reason });
        }
        checked => checked.map(drop)?,
    }
    check_has_no_store(vfs, root)
}

#[cfg(test)]
mod tests;
