//! Verification and backups of a data directory that is open.

use std::path::Path;

use crate::{
    BackupReport, Engine, Result, VerifyReport,
    catalog::ManifestSurvey,
    maintenance::{
        backup::{Backup, BackupSource},
        verify::{begin_open, verify_held, verify_log, verify_moving, verify_pinned},
    },
};

/// How often the manifest is read without its lock before it is read with it.
const UNLOCKED_TRIES: usize = 2;

impl Engine {
    /// Verifies the data directory while it is in use, as [`verify`](crate::verify) does while it
    /// is not.
    ///
    /// Looks at one version of the manifest: what is flushed meanwhile is not looked at, and files
    /// that no manifest names are not either, for some of them are about to be named. Of the log it
    /// checks the bytes of all frames, but does not decode them. Writes, queries and flushes go on;
    /// where the manifest is damaged, or changes all the time, they wait for one reading of it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// # engine.flush()?;
    /// let report = engine.verify()?;
    /// assert!(report.is_clean(), "{report}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if a folder, the manifest or the log cannot be read
    /// at all; [`Closed`](crate::ErrorKind::Closed) once closed.
    pub fn verify(&self) -> Result<VerifyReport> {
        let (vfs, root) = self.files()?;
        let mut report = begin_open(vfs.as_ref(), root)?;
        let (pinned, log) = self.pin_as_it_is()?;
        self.verify_manifest(&mut report)?;
        verify_log(vfs.as_ref(), root, &pinned.state, log.last_seq, &mut report)?;
        drop(log);
        let is_there = |name: &str| self.snapshots().iter().any(|snapshot| snapshot.name == name);
        verify_pinned(vfs.as_ref(), root, &pinned.state, &is_there, &mut report)?;
        Ok(report)
    }

    /// Verifies the objects of the manifest. A reading is as good as one with the manifest locked if it has
    /// found all of the state that there is afterwards; only where it has not, flushes wait for one more.
    fn verify_manifest(&self, report: &mut VerifyReport) -> Result<()> {
        let (vfs, root) = self.files()?;
        for _ in 0..UNLOCKED_TRIES {
            let is_now = |found: &ManifestSurvey| {
                self.with_manifest(|number, state| Ok(found.reached == number && found.state == *state))
            };
            if verify_moving(vfs.as_ref(), root, is_now, report)? {
                return Ok(());
            }
        }
        self.with_manifest(|_, state| verify_held(vfs.as_ref(), root, state, report))
    }

    /// Writes a backup to the folder `target`, while points are written and read: a data directory
    /// of its own, with every point that was acknowledged before the call.
    ///
    /// Pins a version of the manifest and the log after it, brings the data files to `target`, by
    /// hard link where both are on one file system, by copying otherwise, and copies the log.
    /// Flushes nothing, unless there are points that were acknowledged for memory only, which are
    /// not in the log. Links share the bytes with the files they were made from: they outlive the
    /// data directory, but not its disk. If `target` holds an earlier backup of this directory,
    /// only the data files that it lacks are brought, and what it no longer needs is removed at the
    /// end; at every moment it has at least what the earlier backup had.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use arc_core::Engine;
    ///
    /// let target = dir.path().join("backup");
    /// let report = engine.backup(&target)?;
    /// println!("{} files, {} bytes of the log", report.files, report.log_bytes);
    /// let copy = Engine::open(&target)?; // a backup is a data directory like any other
    /// assert_eq!(copy.tables("plant")?[0].buffered_rows, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::BadTarget`](crate::Error::BadTarget) if `target` holds anything else;
    /// [`Error::InUse`](crate::Error::InUse) while another backup is written to it;
    /// [`Error::Corrupt`](crate::Error::Corrupt) naming a data file that is damaged;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io); [`Closed`](crate::ErrorKind::Closed) once closed.
    pub fn backup(&self, target: impl AsRef<Path>) -> Result<BackupReport> {
        self.backup_with(target, |_| {})
    }

    /// As [`backup`](Self::backup), and tells `progress` what is done after each file; the totals
    /// are known from the first call on.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// # engine.flush()?;
    /// let mut told = 0;
    /// engine.backup_with(dir.path().join("backup"), |so_far| {
    ///     told += 1;
    ///     let done = so_far.linked_files + so_far.copied_files + so_far.kept_files;
    ///     println!("{done} of {} files", so_far.files);
    /// })?;
    /// assert!(told > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`backup`](Self::backup).
    pub fn backup_with(
        &self,
        target: impl AsRef<Path>,
        mut progress: impl FnMut(&BackupReport),
    ) -> Result<BackupReport> {
        let (vfs, root) = self.files()?;
        let (mut pinned, log) = self.pin_with_log()?;
        // The backup is a directory of its own.
        pinned.state.directory = None;
        pinned.state.snapshots.clear();
        let source = BackupSource { vfs, root, state: &pinned.state, log: &log.parts.clone(), logged: log.last_seq };
        let begun = Backup::begin(source, target.as_ref())?;
        // Segments are needed no longer, and go on being recycled while files are copied.
        drop(log);
        begun.finish(&mut progress)
    }
}
