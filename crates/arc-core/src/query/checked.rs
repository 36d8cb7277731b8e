//! One data file as queries read it: bytes that are those that were written, or an error that names
//! the file.
//!
//! Only reads. Owns which bytes are read beside those asked for, so that checksums can be compared;
//! which checksums there are is decided in `datafile`. Nothing is remembered of a check: what is
//! read again is checked again.

use std::{any::Any, fmt, ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use datafusion::{
    common::HashMap,
    execution::cache::cache_manager::{CachedFileMetadataEntry, FileMetadata, FileMetadataCache},
};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, path::Path as StorePath,
};
use parking_lot::Mutex;

use super::error::ROTTEN;
use crate::{
    Error,
    datafile::{BlockChecksums, FileChecks, FileComparison, Rotten},
};

/// Bytes up to which ranges that touch are read as one: what is kept of one keeps the other.
const JOINED_BYTES: u64 = 1 << 20;

/// [`ObjectStore`] that has one data file.
pub(super) struct CheckedReads {
    store: Arc<dyn ObjectStore>,
    meta: ObjectMeta,
    checks: FileChecks,
    /// Where the checksums of blocks are kept, beside the footers.
    kept: Arc<FileMetadataCache>,
    /// All of a small file, or the tail of a larger one, once it was read.
    end: Mutex<Option<Bytes>>,
}

/// Checksums of blocks, as they are kept.
struct KeptBlocks(Arc<BlockChecksums>);

impl FileMetadata for KeptBlocks {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn memory_size(&self) -> usize {
        self.0.memory_bytes()
    }

    fn extra_info(&self) -> HashMap<String, String> {
        HashMap::new()
    }
}

impl CheckedReads {
    pub(super) fn new(
        store: Arc<dyn ObjectStore>,
        meta: ObjectMeta,
        checks: FileChecks,
        kept: &Arc<FileMetadataCache>,
    ) -> Self {
        Self { store, meta, checks, kept: Arc::clone(kept), end: Mutex::default() }
    }

    fn rotten(&self, Rotten { offset, reason }: Rotten) -> StoreError {
        let error = Error::corrupt(self.meta.location.as_ref(), offset, reason);
        StoreError::Generic { store: ROTTEN, source: error.into() }
    }

    /// Reads ranges of the file, and compares them with their checksums.
    async fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        match self.checks.checked() {
            FileComparison::Not => self.store.get_ranges(&self.meta.location, ranges).await,
            FileComparison::Whole => {
                let whole = self.end(0, |bytes| self.checks.check_whole(bytes)).await?;
                ranges.iter().map(|range| self.part(&whole, 0, range)).collect()
            }
            FileComparison::Blocks { tail } => self.read_blocks(tail, ranges).await,
        }
    }

    async fn read_blocks(&self, tail: u64, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let blocks = match ranges.iter().any(|range| range.start < tail) {
            true => Some(self.blocks(tail).await?),
            false => None,
        };
        let fetched = match &blocks {
            Some(blocks) => self.fetch(blocks, tail, ranges).await?,
            None => Vec::new(),
        };
        let mut parts = Vec::with_capacity(ranges.len());
        for range in ranges {
            let before = range.start..range.end.min(tail);
            let before = match fetched.iter().find(|(at, _)| at.start <= before.start && before.end <= at.end) {
                Some((at, bytes)) if before.start < before.end => Some(self.part(bytes, at.start, &before)?),
                _ => None,
            };
            let behind = match range.start.max(tail)..range.end {
                behind if behind.start < behind.end => Some(self.part(&self.tail(tail).await?, tail, &behind)?),
                _ => None,
            };
            parts.push(match (before, behind) {
                (Some(before), Some(behind)) => {
                    let mut both = BytesMut::from(before);
                    both.extend_from_slice(&behind);
                    both.freeze()
                }
                (one, other) => one.or(other).unwrap_or_default(),
            });
        }
        Ok(parts)
    }

    /// Reads the blocks that have the ranges, and where each of them lies.
    async fn fetch(
        &self,
        blocks: &BlockChecksums,
        tail: u64,
        ranges: &[Range<u64>],
    ) -> Result<Vec<(Range<u64>, Bytes)>> {
        let wanted = ranges.iter().filter(|range| range.start < tail.min(range.end));
        let mut wide: Vec<Range<u64>> = wanted.map(|range| blocks.widened(range)).collect();
        wide.sort_unstable_by_key(|range| (range.start, range.end));
        wide.dedup_by(|next, last| {
            let joined = last.end.max(next.end);
            let is_one = next.end <= last.end || (next.start <= last.end && joined - last.start <= JOINED_BYTES);
            if is_one {
                last.end = joined;
            }
            is_one
        });
        let fetched = self.store.get_ranges(&self.meta.location, &wide).await?;
        for (range, bytes) in wide.iter().zip(&fetched) {
            self.check_length(range, bytes)?;
            blocks.check(range.start, bytes).map_err(|rotten| self.rotten(rotten))?;
        }
        Ok(wide.into_iter().zip(fetched).collect())
    }

    /// Returns the checksums of the blocks; reads them if they are not kept.
    async fn blocks(&self, tail: u64) -> Result<Arc<BlockChecksums>> {
        let key = StorePath::parse(format!("{}.blocks", self.meta.location))?;
        let kept = self.kept.get(&key).filter(|kept| kept.is_valid_for(&self.meta));
        if let Some(KeptBlocks(blocks)) = kept.as_ref().and_then(|kept| kept.file_metadata.as_any().downcast_ref()) {
            return Ok(Arc::clone(blocks));
        }
        let bytes = self.tail(tail).await?;
        let blocks = Arc::new(self.checks.check_tail(&bytes).map_err(|rotten| self.rotten(rotten))?);
        let kept = Arc::new(KeptBlocks(Arc::clone(&blocks)));
        self.kept.put(&key, CachedFileMetadataEntry::new(self.meta.clone(), kept));
        Ok(blocks)
    }

    async fn tail(&self, start: u64) -> Result<Bytes> {
        self.end(start, |bytes| self.checks.check_tail(bytes).map(drop)).await
    }

    /// Returns the bytes from `start` on, all of which are checked before they are kept.
    async fn end(&self, start: u64, check: impl Fn(&[u8]) -> Result<(), Rotten>) -> Result<Bytes> {
        if let Some(end) = self.end.lock().as_ref() {
            return Ok(end.clone());
        }
        let wanted = start..self.checks.bytes;
        let read = self.store.get_ranges(&self.meta.location, std::slice::from_ref(&wanted)).await?;
        let bytes = read.into_iter().next().unwrap_or_default();
        self.check_length(&wanted, &bytes)?;
        check(&bytes).map_err(|rotten| self.rotten(rotten))?;
        *self.end.lock() = Some(bytes.clone());
        Ok(bytes)
    }

    /// Returns a part of bytes that begin at `start` of the file.
    fn part(&self, bytes: &Bytes, start: u64, range: &Range<u64>) -> Result<Bytes> {
        let at = |offset: u64| usize::try_from(offset.checked_sub(start)?).ok();
        let part = at(range.start).zip(at(range.end)).filter(|(from, to)| from <= to && *to <= bytes.len());
        let beyond = || Rotten {
            offset: self.checks.bytes,
            reason: format!("bytes {} to {} of it were asked for", range.start, range.end),
        };
        part.map(|(from, to)| bytes.slice(from..to)).ok_or_else(|| self.rotten(beyond()))
    }

    fn check_length(&self, range: &Range<u64>, bytes: &Bytes) -> Result<()> {
        if bytes.len() as u64 == range.end - range.start {
            return Ok(());
        }
        let reason = format!("{} bytes were read of {}", bytes.len(), range.end - range.start);
        Err(self.rotten(Rotten { offset: range.start, reason }))
    }
}

impl fmt::Debug for CheckedReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store, meta, checks, .. } = self;
        f.debug_struct("CheckedReads")
            .field("store", store)
            .field("meta", meta)
            .field("checks", checks)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for CheckedReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for CheckedReads {
    async fn get_opts(&self, location: &StorePath, options: GetOptions) -> Result<GetResult> {
        if options.head || *location != self.meta.location {
            return self.store.get_opts(location, options).await;
        }
        let size = self.checks.bytes;
        let range = options.range.as_ref().map_or(Ok(0..size), |range| range.as_range(size));
        let range = range.map_err(|e| StoreError::Generic { store: "CheckedReads", source: e.into() })?;
        let bytes = self.read(std::slice::from_ref(&range)).await?.pop().unwrap_or_default();
        let payload = GetResultPayload::Stream(stream::iter([Ok(bytes)]).boxed());
        Ok(GetResult { payload, meta: self.meta.clone(), range, attributes: object_store::Attributes::default() })
    }

    async fn get_ranges(&self, location: &StorePath, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if *location != self.meta.location {
            return self.store.get_ranges(location, ranges).await;
        }
        self.read(ranges).await
    }

    async fn put_opts(&self, location: &StorePath, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.store.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &StorePath,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.store.put_multipart_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<StorePath>>) -> BoxStream<'static, Result<StorePath>> {
        self.store.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&StorePath>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.store.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&StorePath>) -> Result<ListResult> {
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &StorePath, to: &StorePath, options: CopyOptions) -> Result<()> {
        self.store.copy_opts(from, to, options).await
    }
}
