//! Opening a manifest in an object store, where no lock keeps other writers away.
//!
//! Two things have to hold before anything is read by its number or removed for having no name. The
//! log of this data directory is the one that the manifest counts by: the manifest names the
//! directory, and another one is refused. And no thread that had the manifest open before can
//! commit any more, be it this engine's own process before it was killed, whose last request is
//! still on its way: each opening makes a commit of its own, which takes the number that they would
//! need.

use std::path::Path;

use ulid::Ulid;

use crate::{
    Error, Result,
    catalog::{
        FoundHistory, HistoryWindow, Manifest, ManifestEdit, WriterClaim, check_manifest_is_there, has_log,
        read_store_marker, write_store_marker,
    },
    clock::Clock,
    model::{META_DIR, WRITER},
    random::RandomSource,
    store::OpenStorage,
    vfs::Vfs,
};

/// How often an opening begins again because another thread has made a commit meanwhile.
const TRIES: usize = 10;

/// Why nothing can be opened that is being made, or was cut off.
pub(super) const UNFINISHED: &str = "the object store has a branch that is being made or was never finished: wait, or \
     make it again, or name another prefix";

/// What is needed to open a manifest in an object store.
pub(super) struct ManifestClaim<'a> {
    pub(super) storage: &'a OpenStorage,
    /// The data directory with its store.
    pub(super) vfs: &'a dyn Vfs,
    /// The data directory as it is here.
    pub(super) local: &'a dyn Vfs,
    pub(super) root: &'a Path,
    pub(super) clock: &'a dyn Clock,
    pub(super) random: &'a dyn RandomSource,
    /// Which older states are to be known.
    pub(super) window: HistoryWindow,
}

impl ManifestClaim<'_> {
    /// Opens the manifest and makes this data directory the only one that can write to it.
    pub(super) fn open(&self) -> Result<(Manifest, FoundHistory)> {
        check_manifest_is_there(self.vfs, self.root)?;
        let directory = match read_store_marker(self.local, self.root)? {
            Some(directory) => directory,
            None => {
                let directory = self.new_name();
                write_store_marker(self.local, self.root, &directory)?;
                directory
            }
        };
        let has_log = has_log(self.local, self.root)?;
        let mut fenced = None;
        for _ in 0..TRIES {
            let (mut manifest, found) =
                Manifest::open_keeping(self.storage.location([META_DIR, WRITER]), Some(self.window))?;
            self.check_is_finished(&manifest)?;
            self.check_owner(manifest.state().directory.as_deref(), &directory, has_log)?;
            if manifest.state().directory.is_none() {
                self.storage.check_create()?;
            }
            let opened = WriterClaim { directory: directory.clone(), opening: self.new_name() };
            match manifest.commit(ManifestEdit { opened: Some(opened), ..ManifestEdit::default() }) {
                Ok(()) => return Ok((manifest, found)),
                // What has come in between may be of another directory, or our own from before.
                Err(error @ Error::Closed { .. }) => fenced = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(fenced.unwrap_or_else(|| Error::internal("an opening was never tried")))
    }

    fn check_is_finished(&self, manifest: &Manifest) -> Result<()> {
        if manifest.state().is_unfinished() {
            return Err(Error::OtherStore { path: self.root.into(), reason: UNFINISHED.into() });
        }
        Ok(())
    }

    fn check_owner(&self, owner: Option<&str>, directory: &str, has_log: bool) -> Result<()> {
        let reason = match owner {
            Some(owner) if owner == directory => return Ok(()),
            None if !has_log => return Ok(()),
            None => "it has a log, but the object store does not know it: is it another store or prefix, or was it emptied?"
                .to_owned(),
            Some(_) if self.storage.take_over && !has_log => return Ok(()),
            Some(_) if self.storage.take_over => {
                "another data directory has taken over its object store, and what it has in its log and not there stays \
                 here; only a new, empty directory can take the store over"
                    .to_owned()
            }
            Some(owner) => format!(
                "the object store is that of another data directory ({owner}), whose log may have points that are not \
                 there yet; a new, empty directory can take it over if told to"
            ),
        };
        Err(Error::OtherStore { path: self.root.into(), reason })
    }

    fn new_name(&self) -> String {
        let random = (u128::from(self.random.next()) << 64) | u128::from(self.random.next());
        Ulid::from_parts(u64::try_from(self.clock.now_ns() / 1_000_000).unwrap_or(0), random).to_string()
    }
}
