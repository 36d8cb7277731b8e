//! An object store as queries read it, with the data files that lie in packs as objects of their
//! own, and those that no table has any more under the paths that they had.
//!
//! Only reads. Owns the way from the path of a packed data file to a range of its pack, and from that
//! of an old one to `past/`; all else is the store's below.

use std::{fmt, future::Future, io, ops::Range, path::Path, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, path::Path as StorePath,
};

use crate::model::{packed, past_path};

/// What errors say that are about a file which another process has removed.
pub(crate) const EXPIRED: &str = "removed data file";

/// [`ObjectStore`] over another one.
#[derive(Debug)]
pub(crate) struct PackedReads {
    store: Arc<dyn ObjectStore>,
    is_anothers: bool,
}

impl PackedReads {
    /// If the files are another process's, one that is not there was removed by it.
    pub(crate) fn new(store: Arc<dyn ObjectStore>, is_anothers: bool) -> Self {
        Self { store, is_anothers }
    }

    /// Reads a data file where it lies, as `datafile::where_it_lies` does for all others.
    async fn read<T, F>(&self, location: &StorePath, read: impl Fn(StorePath) -> F + Send) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send,
    {
        let is_missing = |done: &Result<T>| matches!(done, Err(object_store::Error::NotFound { .. }));
        let mut done = read(location.clone()).await;
        if is_missing(&done)
            && let Some(past) = past_location(location)
        {
            done = read(past).await;
            if is_missing(&done) {
                // It may just have come back.
                done = read(location.clone()).await;
            }
        }
        done.map_err(|e| self.failed(e))
    }

    fn failed(&self, error: object_store::Error) -> object_store::Error {
        match error {
            object_store::Error::NotFound { source, .. } if self.is_anothers => {
                object_store::Error::Generic { store: EXPIRED, source }
            }
            error => error,
        }
    }
}

impl fmt::Display for PackedReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

/// Returns the pack of a packed data file, and where it lies there.
fn packed_file(location: &StorePath) -> Result<Option<(StorePath, Range<u64>)>> {
    let Some((pack, range)) = packed(location.as_ref()) else { return Ok(None) };
    Ok(Some((StorePath::parse(pack)?, range)))
}

/// Returns where a data file lies that no table has any more.
fn past_location(location: &StorePath) -> Option<StorePath> {
    StorePath::parse(past_path(Path::new(location.as_ref()))?.to_str()?).ok()
}

/// Returns where in the pack a part of a packed data file lies, which has `file` there. What lies
/// beside is of others.
fn within(file: &Range<u64>, part: &Range<u64>) -> Result<Range<u64>> {
    if part.start <= part.end && part.end <= file.end - file.start {
        return Ok(file.start + part.start..file.start + part.end);
    }
    let reason = format!("bytes {} to {} of a data file of {}", part.start, part.end, file.end - file.start);
    Err(generic(io::Error::new(io::ErrorKind::InvalidInput, reason)))
}

fn generic(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> object_store::Error {
    object_store::Error::Generic { store: "PackedReads", source: source.into() }
}

#[async_trait]
impl ObjectStore for PackedReads {
    async fn get_opts(&self, location: &StorePath, mut options: GetOptions) -> Result<GetResult> {
        let Some((pack, file)) = packed_file(location)? else {
            let read = |place| {
                let options = options.clone();
                async move { self.store.get_opts(&place, options).await }
            };
            let GetResult { payload, meta, range, attributes } = self.read(location, read).await?;
            let meta = ObjectMeta { location: location.clone(), ..meta };
            return Ok(GetResult { payload, meta, range, attributes });
        };
        let size = file.end - file.start;
        let part = options.range.as_ref().map_or(Ok(0..size), |range| range.as_range(size)).map_err(generic)?;
        options.range = Some(GetRange::Bounded(within(&file, &part)?));
        let GetResult { payload, meta, range, attributes } =
            self.store.get_opts(&pack, options).await.map_err(|e| self.failed(e))?;
        let of_file = |offset: u64| offset.saturating_sub(file.start).min(size);
        let range = of_file(range.start)..of_file(range.end);
        Ok(GetResult { payload, meta: ObjectMeta { location: location.clone(), size, ..meta }, range, attributes })
    }

    async fn get_ranges(&self, location: &StorePath, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let Some((pack, file)) = packed_file(location)? else {
            return self.read(location, |place| async move { self.store.get_ranges(&place, ranges).await }).await;
        };
        let ranges = ranges.iter().map(|range| within(&file, range)).collect::<Result<Vec<_>>>()?;
        self.store.get_ranges(&pack, &ranges).await.map_err(|e| self.failed(e))
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

#[cfg(test)]
mod tests {
    use object_store::{ObjectStoreExt, memory::InMemory};

    use super::*;

    #[tokio::test]
    async fn a_packed_data_file_reads_like_an_object_and_nothing_beside_it_is_read() {
        const PACK: &str = "data/_packs/01ARZ3NDEKTSV4RRFFQ69G5FAV.pack";
        let below = InMemory::new();
        below.put(&PACK.into(), "0123456789".into()).await.unwrap();
        let store = PackedReads::new(Arc::new(below), false);
        let file = StorePath::parse(format!("{PACK}/2-5.parquet")).unwrap();
        let whole = store.get(&file).await.unwrap();
        assert_eq!((whole.meta.size, whole.range.clone(), &whole.meta.location), (5, 0..5, &file));
        assert_eq!(whole.bytes().await.unwrap(), "23456");
        assert_eq!(store.head(&file).await.unwrap().size, 5);
        for (range, expected) in [(0..5, "23456"), (1..3, "34"), (4..5, "6")] {
            assert_eq!(store.get_range(&file, range.clone()).await.unwrap(), expected);
            assert_eq!(store.get_ranges(&file, &[range]).await.unwrap(), [expected]);
        }
        let end = GetOptions { range: Some(GetRange::Suffix(2)), ..GetOptions::default() };
        assert_eq!(store.get_opts(&file, end).await.unwrap().bytes().await.unwrap(), "56");
        let beyond = 3..6;
        assert!(store.get_ranges(&file, &[beyond]).await.is_err());
        assert_eq!(store.get(&PACK.into()).await.unwrap().bytes().await.unwrap(), "0123456789");
    }
}
