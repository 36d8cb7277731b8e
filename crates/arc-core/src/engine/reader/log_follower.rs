//! Following the log for tails: the rows that another process has acknowledged, handed on once
//! each.
//!
//! Owns a place in the log of its own, beside that of the versions that queries see: a version is
//! made anew after each flush, and its frames are read again. Keeps schemas and series, and no
//! rows. A thread looks while there are tails, and rests otherwise.

use std::{sync::Arc, time::Duration};

use super::{
    Reader,
    following::Following,
    version::{Pin, Version, damaged},
};
use crate::{
    Error, Result, SequenceNumber,
    engine::{
        frame::FrameKind,
        open::decode_frame,
        tail::{Tail, TailEnding, Tails},
    },
    model::WAL_DIR,
    registry::{Registry, Table},
    sync::{self, Mutex},
    vfs::Vfs,
    wal::{LogTail, ReplayedFrame, TailEnd, acknowledged},
};

/// How often the log is looked at: a small read each time.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How often a place is looked for of which the log lets go meanwhile.
const TRIES: usize = 20;

/// What a reader has for its tails.
#[derive(Debug, Default)]
pub(super) struct LogFollower {
    place: Mutex<FollowedPlace>,
    tails: Tails,
}

#[derive(Debug, Default)]
struct FollowedPlace {
    /// `None` while there are no tails.
    at: Option<LogPlace>,
    has_thread: bool,
}

/// The tables without their rows at one frame, and the next frame.
#[derive(Debug)]
struct LogPlace {
    version: Version,
    log: LogTail,
}

impl LogFollower {
    /// Ends all tails: the engine is closed.
    pub(super) fn close(&self) {
        self.tails.lock().close(&TailEnding::Closed("the engine is closed".into()));
    }
}

impl LogPlace {
    /// Returns the last frame that was read.
    fn last(&self) -> SequenceNumber {
        SequenceNumber(self.log.next().0.saturating_sub(1))
    }

    /// Returns up to where frames are acknowledged, as the writer says or the log proves.
    fn acknowledged(&self, vfs: &dyn Vfs) -> Result<SequenceNumber> {
        let (said, seen) = (acknowledged(vfs, self.log.dir())?, self.last());
        if said > seen || (said == seen && said.0 > 0 && !self.log.proves_more_than(said)?) {
            return Ok(said);
        }
        Ok(self.log.proven(vfs)?.max(said))
    }

    /// Reads on, and hands on to `tails` what they ask for.
    fn read_through(&mut self, vfs: &dyn Vfs, last: SequenceNumber, tails: Option<&Tails>) -> Result<TailEnd> {
        let (dir, registry) = (self.log.dir().to_owned(), Arc::clone(&self.version.registry));
        let mut visit = |frame: ReplayedFrame<'_>| {
            let staged = decode_frame(&registry, &frame).map_err(|reason| damaged(&dir, &frame, &reason))?;
            let Some(tails) = tails else { return Ok(()) };
            let mut tails = tails.lock();
            if let Some((_, staged)) = staged {
                let rows = tails.rows_of(&staged);
                tails.hand_on(rows, &Ok(()));
            } else if frame.kind == FrameKind::Drop as u8 {
                tails.end(&TailEnding::Dropped, |table| table.is_dropped());
            }
            Ok(())
        };
        self.log.read_through(vfs, last, &mut visit)
    }
}

impl Reader {
    /// Opens a tail of a table, and looks at the table at that moment.
    pub(in crate::engine) fn open_tail<T>(
        &self,
        database: &str,
        table: &str,
        look: impl FnOnce(&Table) -> Result<T>,
    ) -> Result<(Tail, T)> {
        if !self.has_log {
            let reason = "an engine that reads a bucket sees no log, and so no rows as they are acknowledged: tail them \
                          where they are written";
            return Err(Error::InvalidOption { option: "mode", reason: reason.into() });
        }
        let mut place = self.follower.place.lock();
        let (pin, place) = self.place_of_now(&mut place)?;
        let seen = look(&*named(pin.registry(), database, table)?)?;
        let table = named(&place.version.registry, database, table)?;
        let tail = self.follower.tails.lock().open(&table, &self.memory)?;
        Ok((tail, seen))
    }

    /// Looks, and brings the place of the tails there.
    fn place_of_now<'p>(&self, place: &'p mut FollowedPlace) -> Result<(Pin, &'p LogPlace)> {
        let mut following = self.following.lock();
        for _ in 0..TRIES {
            let version = following.look(self.clock.now_ns(), &self.options)?;
            *self.seen.lock() = Arc::clone(&version);
            // With the lock held, as for every pin.
            let pin = Pin::new(version);
            if let Some(mut at) = place.at.take() {
                match at.read_through(self.vfs.as_ref(), following.seen(), Some(&self.follower.tails)) {
                    Ok(TailEnd::Reached) => return Ok((pin, place.at.insert(at))),
                    Ok(TailEnd::Missing) => self.lose_tails(&TailEnding::Released),
                    Err(error) => self.lose_tails(&TailEnding::Failed(error.to_string())),
                }
            }
            if let Some(at) = self.begin(&following)? {
                return Ok((pin, place.at.insert(at)));
            }
        }
        let reason = "the process that writes lets go of its log faster than it can be read";
        Err(Error::Busy { reason, retry_after: Duration::from_secs(1) })
    }

    /// Returns the place after the last frame that was seen; `None` if the log has let go of one
    /// before it, which the next look finds in the manifest.
    fn begin(&self, following: &Following) -> Result<Option<LogPlace>> {
        let state = following.state();
        let version = Version::of(state, &self.memory, self.options.memory_bytes);
        // Nothing reads them here, and a file that is held is kept for queries.
        version.registry.all_tables().iter().for_each(|table| table.stored().files.clear());
        let mut place = LogPlace { version, log: LogTail::new(self.root.join(WAL_DIR), state.flushed) };
        let read = place.read_through(self.vfs.as_ref(), following.seen(), None)?;
        Ok((read == TailEnd::Reached).then_some(place))
    }

    /// Holds what follows the log where it is.
    #[cfg(test)]
    pub(in crate::engine) fn hold_follower(&self) -> impl Sized + '_ {
        self.follower.place.lock()
    }

    fn lose_tails(&self, ending: &TailEnding) {
        self.follower.tails.lock().end(ending, |_| true);
    }

    /// Starts the thread that follows the log, if there is none.
    pub(in crate::engine) fn start_following(self: &Arc<Self>) -> Result<Option<sync::thread::JoinHandle<()>>> {
        let mut place = self.follower.place.lock();
        if place.has_thread {
            drop(place);
            // With the lock held: the thread has not looked yet, or waits already.
            let _is_stopped = self.is_stopped.lock();
            self.stopped.notify_all();
            return Ok(None);
        }
        let reader = Arc::clone(self);
        let thread = sync::thread::Builder::new().name("arc-tail".into());
        let thread =
            thread.spawn(move || reader.follow()).map_err(|e| Error::io("start a thread for", &self.root, e))?;
        place.has_thread = true;
        Ok(Some(thread))
    }

    fn follow(&self) {
        while self.wait_for_tails() {
            let mut place = self.follower.place.lock();
            let Some(mut at) = place.at.take() else { continue };
            let read = at
                .acknowledged(self.vfs.as_ref())
                .and_then(|last| at.read_through(self.vfs.as_ref(), last, Some(&self.follower.tails)));
            match read {
                Ok(TailEnd::Reached) => place.at = Some(at),
                Ok(TailEnd::Missing) => self.lose_tails(&TailEnding::Released),
                Err(error) => {
                    tracing::warn!(%error, "cannot follow the log for tails");
                    self.lose_tails(&TailEnding::Failed(error.to_string()));
                }
            }
        }
    }

    /// Waits until it is time to look; false once stopped. While there are no tails it keeps
    /// nothing, and waits for one.
    fn wait_for_tails(&self) -> bool {
        let mut is_stopped = self.is_stopped.lock();
        if !*is_stopped {
            self.stopped.wait_until(&mut is_stopped, sync::now() + LOOK_EVERY);
        }
        while !*is_stopped && !self.has_tails() {
            self.stopped.wait(&mut is_stopped);
        }
        !*is_stopped
    }

    /// Returns whether there are tails; lets go of their place if there are none.
    fn has_tails(&self) -> bool {
        let mut place = self.follower.place.lock();
        let has_tails = self.follower.tails.lock().are_there();
        if !has_tails {
            place.at = None;
        }
        has_tails
    }
}

fn named(registry: &Registry, database: &str, table: &str) -> Result<Arc<Table>> {
    let found = registry.database(database).ok_or_else(|| Error::DatabaseNotFound { database: database.to_owned() })?;
    let missing = || Error::TableNotFound { database: database.to_owned(), table: table.to_owned() };
    found.table(table).ok_or_else(missing)
}
