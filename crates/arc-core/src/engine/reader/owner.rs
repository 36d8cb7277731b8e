//! Keeping up with a process that writes on another machine: as with one on this machine, but that it is
//! asked what is acknowledged, that its log is read through it, and that it may be another one tomorrow.
//!
//! The order of a look is the same: first what is acknowledged, then the manifest, then the log. As the
//! manifest is read after the answer, an answer counts only if the manifest names that process even then:
//! had another one taken over, and acknowledged anything, its claim would have been read.

use std::{path::Path, sync::Arc};

use super::{
    following::{Following, TRIES, pause},
    version::Version,
};
use crate::{
    Error, Options, Result,
    store::{LogState, OwnerLog, carried},
    wal::TailEnd,
};

/// Who has the log.
#[derive(Debug)]
pub(super) struct LogAsked {
    log: Arc<dyn OwnerLog>,
    /// The data directory and the opening whose frames the version has.
    known: Option<(String, u64)>,
}

impl Following {
    /// Asks a process on another machine for the log, if there is one.
    pub(super) fn of_owner(mut self, log: Option<Arc<dyn OwnerLog>>) -> Self {
        self.owner = log.map(|log| LogAsked { log, known: None });
        self
    }

    /// Returns the tables with all that is acknowledged by now.
    pub(super) fn look_at_owner(&mut self, options: &Options) -> Result<Arc<Version>> {
        for attempt in 0..TRIES {
            let said = self.ask_owner()?;
            self.catch_up_manifest()?;
            if self.manifest.state().directory.as_ref() != Some(&said.directory) {
                // The next question goes to the one that the manifest names by now.
                pause(attempt);
                continue;
            }
            self.note_opening(&said);
            let version = self.version(options);
            let last = said.acknowledged.max(self.seen);
            let version = if self.tail.next() <= last { self.growing(version, options) } else { version };
            match self.apply_through(&version, last).map_err(carried)? {
                TailEnd::Reached => {
                    self.seen = last.max(self.manifest.state().flushed);
                    return Ok(version);
                }
                TailEnd::Missing => pause(attempt),
            }
        }
        let reason = format!(
            "it says that frame {} is acknowledged, and does not have it; it may be being opened just now",
            self.tail.next()
        );
        Err(Error::OwnerUnreachable { reason })
    }

    fn ask_owner(&self) -> Result<LogState> {
        let owner = self.owner.as_ref().ok_or_else(|| Error::internal("nobody to ask for the log"))?;
        owner.log.state(self.manifest.state().directory.as_deref())
    }

    /// Forgets frames of an earlier opening: those that were not durable may be others by now.
    fn note_opening(&mut self, said: &LogState) {
        let Some(owner) = &mut self.owner else { return };
        let now = (said.directory.clone(), said.opening);
        if owner.known.as_ref() != Some(&now) {
            owner.known = Some(now);
            self.version = None;
            self.seen = self.manifest.state().flushed;
        }
    }
}

/// Says that a folder has a log of its own, which would not be read.
pub(super) fn has_own_log(root: &Path) -> Error {
    let reason = "it is the data directory of the process that writes, and has the log in it; a reader that asks that \
                  process for it needs a folder of its own"
        .into();
    Error::OtherStore { path: root.into(), reason }
}
