//! A store that keeps its promises passes, and one that breaks any is refused by that one's name.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, PutMultipartOptions, PutResult,
    memory::InMemory,
};

use super::*;
use crate::Engine;

type StoreResult<T> = object_store::Result<T>;

/// What a store does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// Nothing.
    None,
    /// It replaces what is there, and says so.
    Replaces,
    /// It looks first and puts later, so that several who look at once all put.
    LooksFirst,
    /// It says that a put was done, and keeps what was there before.
    Pretends,
    /// It does not list what was put last.
    ListsLate,
    /// It reads from the beginning whatever was asked for.
    IgnoresRanges,
    /// It keeps what was removed.
    Keeps,
}

#[derive(Debug)]
struct Liar {
    inner: InMemory,
    lie: Lie,
    newest: Mutex<Option<StorePath>>,
}

impl fmt::Display for Liar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Liar")
    }
}

#[async_trait]
impl ObjectStore for Liar {
    async fn put_opts(&self, key: &StorePath, bytes: PutPayload, mut options: PutOptions) -> StoreResult<PutResult> {
        let is_race = key.as_ref().contains("race");
        match self.lie {
            Lie::Replaces => options.mode = PutMode::Overwrite,
            Lie::LooksFirst => {
                let is_there = self.inner.head(key).await.is_ok();
                // As others do meanwhile.
                tokio::task::yield_now().await;
                if !is_there {
                    options.mode = PutMode::Overwrite;
                }
            }
            Lie::Pretends if is_race => {
                let _ = self.inner.put_opts(key, bytes, options).await;
                return Ok(PutResult { e_tag: None, version: None });
            }
            _ => {}
        }
        let put = self.inner.put_opts(key, bytes, options).await;
        if put.is_ok() {
            *self.newest.lock().unwrap() = Some(key.clone());
        }
        put
    }

    async fn put_multipart_opts(
        &self,
        key: &StorePath,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(key, options).await
    }

    async fn get_opts(&self, key: &StorePath, mut options: GetOptions) -> StoreResult<GetResult> {
        if self.lie == Lie::IgnoresRanges && options.range.is_some() {
            options.range = Some((0..1000).into());
        }
        self.inner.get_opts(key, options).await
    }

    async fn get_ranges(&self, key: &StorePath, ranges: &[Range<u64>]) -> StoreResult<Vec<Bytes>> {
        self.inner.get_ranges(key, ranges).await
    }

    fn delete_stream(
        &self,
        keys: BoxStream<'static, StoreResult<StorePath>>,
    ) -> BoxStream<'static, StoreResult<StorePath>> {
        if self.lie == Lie::Keeps { keys } else { self.inner.delete_stream(keys) }
    }

    fn list(&self, prefix: Option<&StorePath>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        let hidden = self.newest.lock().unwrap().clone().filter(|_| self.lie == Lie::ListsLate);
        let listed = self.inner.list(prefix);
        listed.try_filter(move |found| std::future::ready(Some(&found.location) != hidden.as_ref())).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&StorePath>) -> StoreResult<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &StorePath, to: &StorePath, options: CopyOptions) -> StoreResult<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

fn storage(lie: Lie) -> (Arc<Liar>, ObjectStorage) {
    let store = Arc::new(Liar { inner: InMemory::new(), lie, newest: Mutex::default() });
    (Arc::clone(&store), ObjectStorage::new(store, "some/prefix"))
}

#[test]
fn a_store_that_keeps_its_promises_passes_and_has_nothing_left() {
    let (store, storage) = storage(Lie::None);
    let report = probe(storage).unwrap();
    let promises: Vec<_> = report.kept.iter().map(|kept| kept.promise).collect();
    assert_eq!(promises, [CREATES, READS, RANGES, RACE, LISTS, REMOVES]);
    assert!(report.to_string().ends_with("the object store keeps its promises"), "{report}");
    let left: Vec<_> = futures::executor::block_on(store.list(None).try_collect()).unwrap();
    assert_eq!(left, []);
}

#[test]
fn a_store_that_lies_is_refused_by_the_promise_that_it_breaks() {
    let cases = [
        (Lie::Replaces, CREATES),
        (Lie::LooksFirst, RACE),
        (Lie::Pretends, RACE),
        (Lie::ListsLate, LISTS),
        (Lie::IgnoresRanges, RANGES),
        (Lie::Keeps, REMOVES),
    ];
    for (lie, expected) in cases {
        let error = probe(storage(lie).1).unwrap_err();
        assert!(matches!(error, Error::BadStore { promise, .. } if promise == expected), "{lie:?}: {error}");
        assert_eq!(error.kind(), crate::ErrorKind::InvalidInput);
    }
}

#[cfg(feature = "object-store-aws")]
mod s3 {
    use super::*;
    use crate::store::test_bucket;

    #[test]
    #[ignore = "needs an S3 server; run scripts/s3"]
    fn a_server_of_s3_keeps_its_promises() {
        println!("{}", probe(ObjectStorage::new(test_bucket(), "probed")).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        assert_eq!(runtime.block_on(test_bucket().list(Some(&"probed".into())).collect::<Vec<_>>()).len(), 0);
    }
}

#[test]
fn an_engine_does_not_begin_in_a_store_that_replaces_objects() {
    let dir = tempfile::tempdir().unwrap();
    let open = |lie| Engine::builder(dir.path().join(format!("{lie:?}"))).object_store(storage(lie).1).open();
    let error = open(Lie::Replaces).unwrap_err();
    assert!(matches!(error, Error::BadStore { promise: CREATES, .. }), "{error}");
    drop(open(Lie::None).unwrap());
}
