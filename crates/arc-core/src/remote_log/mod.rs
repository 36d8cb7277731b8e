//! The log in the object store: groups of frames as numbered objects, for when a machine is lost with
//! its disk.
//!
//! Owns the objects in `wal/<writer>` of the store and their format (docs/format.md, "Remote log").
//! Each is put once, if absent, under the number after the last one; never two at a time. Who finds
//! the number taken by a later writer has been overtaken, and stops. Never looks into a frame, never
//! decides what is put or when, and never removes the newest object: numbers do not begin anew. A
//! later writer begins with a *fence*, an object without frames under the next number, which whoever stalled
//! before a put of that number runs into (decision 043).

mod object;
mod read;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, fmt, sync::Arc};

use bytes::Bytes;

pub(crate) use object::{Group, LogWriter};

use self::object::{DecodedGroup, GroupHeader, HEADER_BYTES, name, parse};
use crate::{
    Error, Result, SequenceNumber,
    store::{ObjectLocation, PutError},
    sync::Mutex,
};

/// How often a fence is put under the next number, each taken by the one who is fenced. That one
/// puts ten or so a second, and stops at the first that it finds taken.
const FENCE_TRIES: usize = 1000;

/// The log of a store, open for the one writer that has claimed it.
#[derive(Debug)]
pub(crate) struct RemoteLog {
    location: Arc<dyn ObjectLocation>,
    writer: LogWriter,
    /// The number of the next object.
    next: u64,
    /// Whether the manifest says that there is a log.
    is_known: bool,
    objects: Arc<LogObjects>,
}

/// The objects that are there, for the one who removes them.
#[derive(Debug)]
pub(crate) struct LogObjects {
    location: Arc<dyn ObjectLocation>,
    kept: Mutex<VecDeque<KeptObject>>,
}

#[derive(Debug, Clone, Copy)]
struct KeptObject {
    number: u64,
    /// No frame of it is after this one.
    last_seq: SequenceNumber,
    /// Whether it has to stay although all its frames are elsewhere: a fence that somebody may yet
    /// run into.
    stays: bool,
}

/// Why a group is not in the store, or may not be.
#[derive(Debug)]
pub(crate) enum NotPut {
    /// A later writer has the store.
    Fenced(Takeover),
    /// It may be there, now or later: only the same group may be put next.
    Unknown(Error),
    /// What is there cannot be.
    Broken(Error),
}

/// Who has taken a store over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Takeover(LogWriter);

impl fmt::Display for Takeover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogWriter { epoch, directory } = &self.0;
        write!(
            f,
            "the data directory {directory} has taken the object store over (commit {epoch} of its manifest), and nothing \
             that is written here counts from then on; send writes there, stop this engine, and open the store from a \
             new, empty data directory if it is to have it again"
        )
    }
}

impl RemoteLog {
    /// Begins a log of which no writer has put anything.
    pub(crate) fn begin(location: Arc<dyn ObjectLocation>, writer: LogWriter) -> Self {
        let objects = LogObjects { location: Arc::clone(&location), kept: Mutex::default() };
        Self { location, writer, next: 1, is_known: false, objects: Arc::new(objects) }
    }

    /// Goes on with the log that is there, and keeps all earlier writers from going on with it.
    /// Returns also the last frame that it has.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] if a later writer has the store; [`Error::Corrupt`], [`Error::Io`].
    pub(crate) fn take_over(location: Arc<dyn ObjectLocation>, writer: LogWriter) -> Result<(Self, SequenceNumber)> {
        let mut log = Self { is_known: true, ..Self::begin(location, writer) };
        let listed = log.list()?;
        let mut last_seq = SequenceNumber::default();
        if let Some(newest) = listed.back() {
            log.next = newest.number + 1;
            let header = log.get(newest.number)?.header;
            // It has claimed the manifest since, and put its fence.
            if header.writer.epoch > log.writer.epoch {
                return Err(Error::Closed { reason: Takeover(header.writer).to_string() });
            }
            last_seq = header.last_seq;
        }
        *log.objects.kept.lock() = listed.into_iter().map(|kept| KeptObject { last_seq, ..kept }).collect();
        for _ in 0..FENCE_TRIES {
            match log.put_fence(last_seq)? {
                None => return Ok((log, last_seq)),
                // It came first, and is part of the log.
                Some(found) => {
                    last_seq = last_seq.max(found.last_seq);
                    log.keep(found.last_seq, false);
                }
            }
        }
        Err(Error::Closed { reason: "another engine goes on to put groups of the log, though it is fenced".into() })
    }

    /// Puts a fence under the next number; returns what is there already, if it is of the log.
    fn put_fence(&mut self, last_seq: SequenceNumber) -> Result<Option<GroupHeader>> {
        let (number, first_seq) = (self.next, last_seq.next());
        let fence = GroupHeader { number, writer: self.writer.clone(), first_seq, last_seq };
        match self.location.put_new(&name(number), &fence.encode_fence()) {
            Ok(()) => {
                self.keep(last_seq, true);
                Ok(None)
            }
            Err(PutError::NotThere(error) | PutError::Unknown(error)) => Err(error),
            Err(PutError::Taken) => match self.get(number)?.header {
                found if found.writer.epoch > self.writer.epoch => {
                    Err(Error::Closed { reason: Takeover(found.writer).to_string() })
                }
                found => Ok(Some(found)),
            },
        }
    }

    /// Puts a group under the next number. One request, and one or two more where its answer was
    /// unclear.
    ///
    /// # Errors
    ///
    /// A [`NotPut`]; after [`NotPut::Unknown`] the next call has to put the same group.
    pub(crate) fn put(&mut self, group: &Group) -> Result<(), NotPut> {
        match self.location.put_new(&name(self.next), &group.encode(self.next, &self.writer)) {
            Ok(()) => {
                self.keep(group.last_seq(), false);
                Ok(())
            }
            Err(PutError::NotThere(error) | PutError::Unknown(error)) => Err(NotPut::Unknown(error)),
            Err(PutError::Taken) => Err(self.taken()),
        }
    }

    /// Says whose object has the next number. It cannot be one of an earlier writer: those run into
    /// the fence of this one.
    fn taken(&self) -> NotPut {
        match self.get(self.next).map(|found| found.header) {
            Ok(found) if found.writer.epoch > self.writer.epoch => NotPut::Fenced(Takeover(found.writer)),
            Ok(_) => {
                let path = self.location.path(&name(self.next));
                NotPut::Broken(Error::corrupt(path, 0, "another group has the number that comes next"))
            }
            Err(error @ Error::Io { .. }) => NotPut::Unknown(error),
            Err(error) => NotPut::Broken(error),
        }
    }

    /// Notes what the next number stands for.
    fn keep(&mut self, last_seq: SequenceNumber, stays: bool) {
        self.objects.kept.lock().push_back(KeptObject { number: self.next, last_seq, stays });
        self.next += 1;
    }

    /// Returns whether the manifest says that there is a log, which it has to before a group is put.
    pub(crate) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Notes that it does.
    pub(crate) fn note_known(&mut self) {
        self.is_known = true;
    }

    /// Returns who writes.
    pub(crate) fn writer(&self) -> &LogWriter {
        &self.writer
    }

    /// Returns the objects that are there, for the one who removes them.
    pub(crate) fn objects(&self) -> Arc<LogObjects> {
        Arc::clone(&self.objects)
    }

    /// Returns the same log, which waits no longer than once for an answer from now on.
    pub(crate) fn with_location(mut self, location: Arc<dyn ObjectLocation>) -> Self {
        self.location = location;
        self
    }
}

impl LogObjects {
    /// Removes the objects whose frames are all at or before `flushed`, but for the newest, and for
    /// fences that are not old enough. What cannot be removed is tried again with the next call.
    pub(crate) fn release(&self, flushed: SequenceNumber) {
        let released: Vec<KeptObject> = {
            let kept = self.kept.lock();
            let newest = kept.back().map_or(0, |newest| newest.number);
            let is_released = |kept: &&KeptObject| kept.last_seq <= flushed && kept.number != newest && !kept.stays;
            kept.iter().filter(is_released).copied().collect()
        };
        if released.is_empty() {
            return;
        }
        let names: Vec<_> = released.iter().map(|kept| name(kept.number)).collect();
        if let Err(error) = self.location.remove_all(&names) {
            tracing::warn!(objects = names.len(), %error, "cannot remove what is flushed from the log in the object store");
            return;
        }
        let mut kept = self.kept.lock();
        kept.retain(|kept| !released.iter().any(|released| released.number == kept.number));
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.kept.lock().len()
    }
}
