//! An object that comes in parts, which may be written at the same time.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart, path::Path as StorePath};

use super::{
    super::publish::{Existing, discard, sync},
    blocking, failed,
    files::Files,
    generic,
};
use crate::vfs::VfsFile;

/// A file that has no name yet. Dropped before it is complete, it goes away.
#[derive(Debug)]
pub(super) struct PartsUpload {
    files: Arc<Files>,
    path: PathBuf,
    temporary: PathBuf,
    /// `None` once it is complete, aborted or has failed.
    file: Option<Arc<dyn VfsFile>>,
    /// Where the next part begins.
    offset: u64,
    /// Bytes of the parts that were written.
    written: Arc<AtomicU64>,
}

impl PartsUpload {
    pub(super) fn start(files: Arc<Files>, location: &StorePath) -> Result<Self> {
        let path = files.path(location)?;
        let temporary = files.begin(&path)?;
        let file = files.vfs.create_new(&temporary).map_err(|e| failed(&temporary, "create", e))?;
        Ok(Self { files, path, temporary, file: Some(file.into()), offset: 0, written: Arc::default() })
    }
}

#[async_trait]
impl MultipartUpload for PartsUpload {
    fn put_part(&mut self, part: PutPayload) -> UploadPart {
        let (file, offset, temporary) = (self.file.clone(), self.offset, self.temporary.clone());
        let (written, len) = (Arc::clone(&self.written), part.content_length() as u64);
        self.offset += len;
        Box::pin(blocking(move || {
            let file = file.ok_or_else(|| generic("the upload is over"))?;
            let parts: Vec<&[u8]> = part.iter().map(AsRef::as_ref).collect();
            file.write_all_at(&parts, offset).map_err(|e| failed(&temporary, "write", e))?;
            written.fetch_add(len, Ordering::AcqRel);
            Ok(())
        }))
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let file = self.file.take().ok_or_else(|| generic("the upload is over"))?;
        let (files, path, temporary) = (Arc::clone(&self.files), self.path.clone(), self.temporary.clone());
        // A part that failed, or that nothing waited for, would be a hole.
        let is_whole = self.written.load(Ordering::Acquire) == self.offset;
        blocking(move || {
            let missing = || Err(generic("parts of the upload are missing"));
            let synced = if is_whole { sync(file.as_ref(), &temporary).map_err(generic) } else { missing() };
            if synced.is_err() {
                discard(files.vfs.as_ref(), &temporary);
            }
            synced.and_then(|()| files.publish(&temporary, &path, Existing::Replace, |_| false))
        })
        .await?;
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn abort(&mut self) -> Result<()> {
        if self.file.take().is_some() {
            let (files, temporary) = (Arc::clone(&self.files), self.temporary.clone());
            blocking(move || files.vfs.remove_file(&temporary).map_err(|e| failed(&temporary, "delete", e))).await?;
        }
        Ok(())
    }
}

impl Drop for PartsUpload {
    fn drop(&mut self) {
        if self.file.is_some() {
            discard(self.files.vfs.as_ref(), &self.temporary);
        }
    }
}
