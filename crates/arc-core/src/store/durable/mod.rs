//! A local folder as an object store that syncs what it is given.
//!
//! Owns the way from a location to a file, and the syncs. An object is durable before it is
//! acknowledged: its bytes, its name, and the folders that lead to it. Never changes a file once it
//! has its name, never goes on after a failed sync of a name, never leaves the root.

mod buffers;
mod files;
mod upload;

use std::{fmt, future::Future, io, ops::Range, path::Path, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use object_store::{
    Attributes, CopyMode, CopyOptions, Error as StoreError, GetOptions, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    RenameOptions, RenameTargetMode, Result, path::Path as StorePath,
};

use self::{files::Files, upload::PartsUpload};
use super::publish::Existing;
use crate::vfs::Vfs;

/// How much of an object that is read as a whole is in memory at once.
const PIECE_BYTES: u64 = 1 << 20;

/// [`ObjectStore`] over a folder of a [`Vfs`]. Clones are the same store.
///
/// As `object_store`'s own `LocalFileSystem`, but durable: `put`, `complete`, `copy`, `rename` and
/// `delete` return after the file and the names of the file and of new folders were synced, and
/// what a listing shows is durable, though another process put it and was killed. Locations are
/// paths below the root as they are; those that end in `.<number>.tmp` are refused, for unfinished
/// files have such names. There are no tags, versions and attributes, and no put on condition of an
/// earlier version.
///
/// After a failed sync of a name nothing knows what is durable: the store then takes no more
/// objects, and does not show the one in doubt. Copies share their bytes on disk, so both names
/// have to be on one file system.
///
/// Called from a task of tokio, it does its work on the threads for blocking calls; from elsewhere,
/// where it is called.
#[derive(Debug, Clone)]
pub struct DurableLocal {
    files: Arc<Files>,
}

impl DurableLocal {
    /// Opens the store below `root`, which exists and is durable, and which no other caller writes
    /// to: what a process that was killed has not finished is removed, and would be in the way of
    /// an object of the same name.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](crate::Error::Io) if a folder cannot be listed or a file not be removed.
    pub fn open(vfs: Arc<dyn Vfs>, root: &Path) -> crate::Result<Self> {
        let store = Self::new(vfs, root);
        store.files.remove_unfinished()?;
        Ok(store)
    }

    /// Returns the store below `root`, which exists and is durable. Asks nothing, removes nothing;
    /// for those who only read, or share the folder with others.
    #[must_use]
    pub fn new(vfs: Arc<dyn Vfs>, root: &Path) -> Self {
        Self::keeping(vfs, root, 0)
    }

    /// As [`new`](Self::new); keeps up to `idle_bytes` of memory that reads have used for the next
    /// ones.
    pub(crate) fn keeping(vfs: Arc<dyn Vfs>, root: &Path, idle_bytes: usize) -> Self {
        Self { files: Arc::new(Files::new(vfs, root, idle_bytes)) }
    }

    fn blocking<T, W>(&self, work: W) -> impl Future<Output = Result<T>> + Send + use<T, W>
    where
        T: Send + 'static,
        W: FnOnce(&Files) -> Result<T> + Send + 'static,
    {
        let files = Arc::clone(&self.files);
        blocking(move || work(&files))
    }
}

impl fmt::Display for DurableLocal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DurableLocal({})", self.files.root().display())
    }
}

#[async_trait]
impl ObjectStore for DurableLocal {
    async fn put_opts(&self, location: &StorePath, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let existing = match options.mode {
            PutMode::Create => Existing::Keep,
            PutMode::Overwrite => Existing::Replace,
            PutMode::Update(_) => return Err(not_implemented("put on condition of a version")),
        };
        refuse_attributes(&options.attributes)?;
        let location = location.clone();
        self.blocking(move |files| {
            let parts: Vec<&[u8]> = payload.iter().map(AsRef::as_ref).collect();
            files.put(&location, &parts, existing)?;
            Ok(PutResult { e_tag: None, version: None })
        })
        .await
    }

    async fn put_multipart_opts(
        &self,
        location: &StorePath,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        refuse_attributes(&options.attributes)?;
        let location = location.clone();
        let files = Arc::clone(&self.files);
        let upload = self.blocking(move |_| PartsUpload::start(files, &location)).await?;
        Ok(Box::new(upload))
    }

    async fn get_opts(&self, location: &StorePath, options: GetOptions) -> Result<GetResult> {
        let location = location.clone();
        let store = self.clone();
        self.blocking(move |files| {
            let opened = files.open(&location)?;
            options.check_preconditions(&opened.meta)?;
            let meta = opened.meta.clone();
            let size = meta.size;
            let range = options.range.as_ref().map_or(Ok(0..size), |range| range.as_range(size));
            let range = range.map_err(|source| generic(io::Error::new(io::ErrorKind::InvalidInput, source)))?;
            let payload = if options.head {
                opened.check_is_file()?;
                stream::empty().boxed()
            } else if range.end - range.start <= PIECE_BYTES {
                // What a query asks for: one visit to the threads for blocking calls is all it
                // takes.
                let bytes = opened.read(range.clone())?;
                stream::iter([Ok(bytes)]).boxed()
            } else {
                let opened = Arc::new(opened);
                let read = move |piece| {
                    let opened = Arc::clone(&opened);
                    store.blocking(move |_| opened.read(piece))
                };
                stream::iter(pieces(range.clone())).then(read).boxed()
            };
            Ok(GetResult { payload: GetResultPayload::Stream(payload), meta, range, attributes: Attributes::new() })
        })
        .await
    }

    async fn get_ranges(&self, location: &StorePath, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let (location, ranges) = (location.clone(), ranges.to_vec());
        self.blocking(move |files| {
            let opened = files.open(&location)?;
            ranges.into_iter().map(|range| opened.read(range)).collect()
        })
        .await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<StorePath>>) -> BoxStream<'static, Result<StorePath>> {
        let store = self.clone();
        let delete = move |location: StorePath| {
            store.blocking(move |files| {
                files.delete(&location)?;
                Ok(location)
            })
        };
        locations.and_then(delete).boxed()
    }

    fn list(&self, prefix: Option<&StorePath>) -> BoxStream<'static, Result<ObjectMeta>> {
        let prefix = prefix.cloned().unwrap_or_default();
        let listed = self.blocking(move |files| files.list_all(&prefix));
        stream::once(listed).map_ok(|objects| stream::iter(objects.into_iter().map(Ok))).try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&StorePath>) -> Result<ListResult> {
        let prefix = prefix.cloned().unwrap_or_default();
        self.blocking(move |files| {
            let (objects, common_prefixes) = files.list_folder(&prefix)?;
            Ok(ListResult { common_prefixes, objects })
        })
        .await
    }

    async fn copy_opts(&self, from: &StorePath, to: &StorePath, options: CopyOptions) -> Result<()> {
        let existing = match options.mode {
            CopyMode::Create => Existing::Keep,
            CopyMode::Overwrite => Existing::Replace,
        };
        let (from, to) = (from.clone(), to.clone());
        self.blocking(move |files| files.copy(&from, &to, existing)).await
    }

    async fn rename_opts(&self, from: &StorePath, to: &StorePath, options: RenameOptions) -> Result<()> {
        let existing = match options.target_mode {
            RenameTargetMode::Create => Existing::Keep,
            RenameTargetMode::Overwrite => Existing::Replace,
        };
        let (from, to) = (from.clone(), to.clone());
        self.blocking(move |files| {
            if from == to && existing == Existing::Replace {
                return files.open(&from).map(|_| ());
            }
            files.copy(&from, &to, existing)?;
            files.delete(&from)
        })
        .await
    }
}

/// Cuts a range into pieces that are read one after the other.
fn pieces(range: Range<u64>) -> impl Iterator<Item = Range<u64>> + Send {
    let count = (range.end - range.start).div_ceil(PIECE_BYTES);
    (0..count).map(move |piece| {
        let start = range.start + piece * PIECE_BYTES;
        start..(start + PIECE_BYTES).min(range.end)
    })
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(work).await?,
        Err(_) => work(),
    }
}

fn refuse_attributes(attributes: &Attributes) -> Result<()> {
    if attributes.is_empty() { Ok(()) } else { Err(not_implemented("attributes of an object")) }
}

fn not_implemented(operation: &str) -> StoreError {
    StoreError::NotImplemented { operation: operation.into(), implementer: "DurableLocal".into() }
}

fn generic(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::Generic { store: "DurableLocal", source: source.into() }
}

/// Returns the error of a call on the file `path`.
fn failed(path: &Path, action: &'static str, source: io::Error) -> StoreError {
    let kind = source.kind();
    let error = crate::Error::io(action, path, source);
    let (path, source): (_, Box<dyn std::error::Error + Send + Sync>) = (path.display().to_string(), error.into());
    match kind {
        // A folder is no object, and there is none below an object.
        io::ErrorKind::NotFound | io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory => {
            StoreError::NotFound { path, source }
        }
        io::ErrorKind::AlreadyExists => StoreError::AlreadyExists { path, source },
        _ => generic(source),
    }
}

#[cfg(test)]
mod tests;
