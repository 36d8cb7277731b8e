//! Data files that are live no longer and still on disk, for those who read them.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

use super::shared::Shared;
use crate::datafile::{DataFile, remove_data_file};

/// When files that a view still needs are looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Files that no manifest names any more, since this process took them out of it.
///
/// A view, and with it a query, holds the files that it reads; this list holds them too, so a file that nobody else holds
/// cannot be asked for again. What is left here when the process ends is removed when the directory is opened the next
/// time: the lock on it says that nobody reads there.
#[derive(Debug, Default)]
pub(super) struct Retired {
    files: Mutex<Vec<RetiredFile>>,
    /// Paths of files that were never in the manifest, and may be there.
    leftovers: Mutex<Vec<String>>,
}

#[derive(Debug)]
struct RetiredFile {
    file: Arc<DataFile>,
    since_ns: i64,
}

impl Retired {
    pub(super) fn len(&self) -> usize {
        self.files.lock().len()
    }

    /// Takes files that were taken out of the manifest and of the tables' views.
    pub(super) fn add(&self, files: impl IntoIterator<Item = Arc<DataFile>>, now_ns: i64) {
        self.files.lock().extend(files.into_iter().map(|file| RetiredFile { file, since_ns: now_ns }));
    }

    /// Takes the path of a file that is in no manifest and will be in none. It may be there or not.
    pub(super) fn leave(&self, path: &str) {
        self.leftovers.lock().push(path.to_owned());
    }

    /// Removes what was left; what cannot be removed stays for the next time, and at last for the next opening.
    pub(super) fn remove_leftovers(&self, shared: &Shared) {
        let mut leftovers = std::mem::take(&mut *self.leftovers.lock());
        leftovers.retain(|path| match remove_data_file(shared.vfs.as_ref(), &shared.root, path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::debug!(path, %error, "cannot remove a data file that was never committed");
                true
            }
            _ => false,
        });
        self.leftovers.lock().append(&mut leftovers);
    }

    /// Returns the files that may go: nobody holds them, and their time of grace is over.
    fn take_free(&self, now_ns: i64, grace_ns: i64) -> Vec<RetiredFile> {
        let is_free = |retired: &mut RetiredFile| {
            Arc::strong_count(&retired.file) == 1 && now_ns.saturating_sub(retired.since_ns) >= grace_ns
        };
        self.files.lock().extract_if(.., is_free).collect()
    }

    /// Returns when the next file may go.
    pub(super) fn next_due_ns(&self, now_ns: i64, grace_ns: i64) -> Option<i64> {
        let files = self.files.lock();
        let due = files.iter().map(|retired| retired.since_ns.saturating_add(grace_ns)).min()?;
        Some(due.max(now_ns.saturating_add(i64::try_from(LOOK_AGAIN.as_nanos()).unwrap_or(i64::MAX))))
    }
}

impl Shared {
    /// Removes from disk the files that may go; returns how many. One that cannot be removed stays for the next time.
    pub(super) fn remove_retired(&self, now_ns: i64) -> u64 {
        let mut removed = 0;
        self.compactor.retired.remove_leftovers(self);
        for retired in self.compactor.retired.take_free(now_ns, self.grace_ns()) {
            let path = &retired.file.path;
            match remove_data_file(self.vfs.as_ref(), &self.root, path) {
                Ok(()) => removed += 1,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    tracing::warn!(path, %error, "cannot remove a data file that was replaced");
                    self.compactor.retired.add([retired.file], now_ns);
                }
            }
        }
        removed
    }

    pub(super) fn grace_ns(&self) -> i64 {
        i64::try_from(self.options.compaction_grace.as_nanos()).unwrap_or(i64::MAX)
    }
}
