//! Verification and backups of a data directory that is open.

use std::path::Path;

use crate::{
    BackupReport, Engine, Result, VerifyReport,
    maintenance::{
        backup::{Backup, Source},
        verify::{verify_held, verify_pinned},
    },
};

impl Engine {
    /// Verifies the data directory while it is in use, as [`verify`](crate::verify) does while it is not.
    ///
    /// Looks at one version of the manifest: what is flushed meanwhile is not looked at, and files that no manifest names
    /// are not either, for some of them are about to be named. Of the log it checks the bytes of all frames, but does not
    /// decode them. Writes and queries go on; a flush waits until manifest and log are checked.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if a folder, the manifest or the log cannot be read at all;
    /// [`Closed`](crate::ErrorKind::Closed) once closed.
    pub fn verify(&self) -> Result<VerifyReport> {
        let (vfs, root) = self.files();
        let (mut report, pinned) = self.pin(|state, logged| verify_held(vfs.as_ref(), root, state, logged))?;
        verify_pinned(vfs.as_ref(), root, &pinned.state, &mut report)?;
        Ok(report)
    }

    /// Writes a backup to the folder `target`, while points are written and read: a data directory of its own, with every
    /// point that was acknowledged before the call.
    ///
    /// Pins a version of the manifest and the log behind it, brings the data files to `target`, by hard link where both are
    /// on one file system, by copying otherwise, and copies the log. Flushes nothing, unless there are points that were
    /// acknowledged for memory only, which are not in the log. Links share the bytes with the files they were made from:
    /// they outlive the data directory, but not its disk. If `target` holds an earlier backup of this directory, only the
    /// data files that it lacks are brought, and what it no longer needs is removed at the end; at every moment it has at
    /// least what the earlier backup had.
    ///
    /// # Errors
    ///
    /// [`Error::BadTarget`](crate::Error::BadTarget) if `target` holds anything else; [`Error::InUse`](crate::Error::InUse)
    /// while another backup is written to it; [`Error::Corrupt`](crate::Error::Corrupt) naming a data file that is damaged;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io); [`Closed`](crate::ErrorKind::Closed) once closed.
    pub fn backup(&self, target: impl AsRef<Path>) -> Result<BackupReport> {
        self.backup_with(target, |_| {})
    }

    /// As [`backup`](Self::backup), and tells `progress` what is done after each file; the totals are known from the first
    /// call on.
    ///
    /// # Errors
    ///
    /// As [`backup`](Self::backup).
    pub fn backup_with(
        &self,
        target: impl AsRef<Path>,
        mut progress: impl FnMut(&BackupReport),
    ) -> Result<BackupReport> {
        let (vfs, root) = self.files();
        let (mut pinned, log) = self.pin_with_log()?;
        // The backup is a directory of its own.
        pinned.state.directory = None;
        let source = Source { vfs, root, state: &pinned.state, log: &log.parts.clone(), logged: log.last_seq };
        let begun = Backup::begin(source, target.as_ref())?;
        // Segments are needed no longer, and go on being recycled while files are copied.
        drop(log);
        begun.finish(&mut progress)
    }
}
