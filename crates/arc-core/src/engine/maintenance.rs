//! Looking after a data directory while it is open: verification.

use std::sync::Arc;

use super::{Engine, shared::Shared};
use crate::{
    Result, VerifyReport,
    catalog::ManifestState,
    datafile::DataFile,
    verify::{verify_held, verify_pinned},
};

/// One version of the manifest. Its data files stay as long as this is held.
#[derive(Debug)]
struct Pinned {
    state: ManifestState,
    /// The same files as queries see them: who removes files looks at whether anybody holds these.
    _files: Vec<Arc<DataFile>>,
}

impl Pinned {
    /// Takes the version that `manifest` says now, which the caller keeps from changing meanwhile.
    fn new(shared: &Shared, state: &ManifestState) -> Self {
        let files = |table: &Arc<crate::registry::Table>| table.rows.lock().files.clone();
        Self { state: state.clone(), _files: shared.registry.all_tables().iter().flat_map(files).collect() }
    }
}

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
        self.check_open()?;
        let shared = &self.inner.shared;
        let (mut report, pinned) = {
            let manifest = shared.manifest.lock();
            let pinned = Pinned::new(shared, manifest.state());
            let logged = shared.wal.lock().last_seq();
            (verify_held(shared.vfs.as_ref(), &shared.root, &pinned.state, logged)?, pinned)
        };
        verify_pinned(shared.vfs.as_ref(), &shared.root, &pinned.state, &mut report)?;
        Ok(report)
    }
}
