//! The manifest on an object store that fails: before and after it did what it was asked, for a
//! while or for ever, late, or in the middle of an answer.

use std::{
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use futures::{
    FutureExt, StreamExt,
    future::pending,
    stream::{self, BoxStream},
};
use object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, memory::InMemory, path::Path as StorePath,
};
use parking_lot::Mutex;

use super::*;
use crate::store::{StoreLocation, StoreOptions};

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// It is not carried out: a lost connection, a 503.
    Before,
    /// It is carried out, and the answer is lost.
    After,
    /// It is refused for good.
    Refused,
    /// There is never an answer, and it is not carried out.
    Hangs,
    /// There is never an answer, and it is carried out.
    HangsAfter,
    /// Half of the body comes, and then the end.
    Truncated,
    /// It is carried out while the next request is: a put that was on its way.
    Late,
}

/// Requests by number, from 1: those in the range fail.
#[derive(Debug)]
struct Faulty {
    inner: InMemory,
    how: Mutex<Option<(How, Range<u64>)>>,
    requests: AtomicU64,
    late: Mutex<Option<(StorePath, PutPayload, PutOptions)>>,
}

impl Faulty {
    fn new() -> Arc<Self> {
        Self::over(InMemory::new())
    }

    fn over(inner: InMemory) -> Arc<Self> {
        Arc::new(Self { inner, how: Mutex::default(), requests: AtomicU64::new(0), late: Mutex::default() })
    }

    fn set(&self, how: How, requests: Range<u64>) {
        self.requests.store(0, Ordering::SeqCst);
        *self.how.lock() = Some((how, requests));
    }

    fn clear(&self) {
        *self.how.lock() = None;
    }

    /// Counts a request; a late put arrives with the one after it.
    async fn enter(&self) -> Option<How> {
        let late = self.late.lock().take();
        if let Some((location, payload, options)) = late {
            let _ = self.inner.put_opts(&location, payload, options).await;
        }
        let number = self.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let how = self.how.lock();
        how.as_ref().filter(|(_, failing)| failing.contains(&number)).map(|(how, _)| *how)
    }
}

impl std::fmt::Display for Faulty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Faulty")
    }
}

fn lost() -> StoreError {
    StoreError::Generic { store: "Faulty", source: "503 slow down".into() }
}

fn refused() -> StoreError {
    StoreError::PermissionDenied { path: "x".into(), source: "403".into() }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        location: &StorePath,
        payload: PutPayload,
        options: PutOptions,
    ) -> object_store::Result<PutResult> {
        let how = self.enter().await;
        match how {
            Some(How::Before | How::Truncated) => return Err(lost()),
            Some(How::Refused) => return Err(refused()),
            Some(How::Hangs) => return pending().await,
            Some(How::Late) => {
                *self.late.lock() = Some((location.clone(), payload, options));
                return Err(lost());
            }
            Some(How::After | How::HangsAfter) | None => {}
        }
        let put = self.inner.put_opts(location, payload, options).await;
        match how {
            Some(How::After) => Err(lost()),
            Some(_) => pending().await,
            None => put,
        }
    }

    async fn get_opts(&self, location: &StorePath, options: GetOptions) -> object_store::Result<GetResult> {
        let how = self.enter().await;
        let mut got = self.inner.get_opts(location, options).await?;
        match how {
            None => Ok(got),
            Some(How::Hangs | How::HangsAfter) => pending().await,
            Some(How::Refused) => Err(refused()),
            Some(How::Truncated) => {
                let range = got.range.clone();
                let bytes = got.bytes().await?;
                let half = Ok(bytes.slice(..bytes.len() / 2));
                let meta = self.inner.get_opts(location, GetOptions::default()).await?;
                got = GetResult { payload: GetResultPayload::Stream(stream::iter([half]).boxed()), range, ..meta };
                Ok(got)
            }
            Some(_) => Err(lost()),
        }
    }

    fn list(&self, prefix: Option<&StorePath>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        match self.enter().now_or_never().flatten() {
            None => self.inner.list(prefix),
            Some(How::Hangs | How::HangsAfter) => stream::pending().boxed(),
            // The first page, and then nothing more.
            Some(How::Truncated) => self.inner.list(prefix).take(1).chain(stream::iter([Err(lost())])).boxed(),
            Some(_) => stream::iter([Err(lost())]).boxed(),
        }
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<StorePath>>,
    ) -> BoxStream<'static, object_store::Result<StorePath>> {
        match self.enter().now_or_never().flatten() {
            None => self.inner.delete_stream(locations),
            Some(_) => stream::iter([Err(lost())]).boxed(),
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &StorePath,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn list_with_delimiter(&self, prefix: Option<&StorePath>) -> object_store::Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &StorePath, to: &StorePath, options: CopyOptions) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

fn open(store: &Arc<Faulty>, settled_after: Duration) -> Result<Manifest> {
    Manifest::open_at(location(store, settled_after))
}

fn location(store: &Arc<Faulty>, settled_after: Duration) -> Arc<dyn ObjectLocation> {
    let options = StoreOptions {
        // What hangs does so for good, and everything else answers at once.
        request_timeout: Duration::from_millis(2),
        tries: 3,
        first_pause: Duration::ZERO,
        settled_after,
        ..StoreOptions::default()
    };
    Arc::new(StoreLocation::new(Arc::clone(store) as _, DIR.into(), options).unwrap())
}

const ALL: [How; 7] = [How::Before, How::After, How::Refused, How::Hangs, How::HangsAfter, How::Truncated, How::Late];

/// Which requests fail: each of the first ones alone, some in a row, and all from there on.
fn failing() -> impl Iterator<Item = Range<u64>> {
    (1..6).flat_map(|first| [first..first + 1, first..first + 4, first..u64::MAX])
}

#[test]
fn whatever_request_fails_no_commit_is_lost_or_doubled() {
    for (edits, how) in [3, 126].into_iter().flat_map(|edits| ALL.map(|how| (edits, how))) {
        let base = Faulty::new();
        let mut manifest = open(&base, Duration::ZERO).unwrap();
        (0..edits).for_each(|number| manifest.commit(edit(number)).unwrap());
        for requests in failing() {
            let case = format!("{edits} edits, {how:?} {requests:?}");
            let store = Faulty::over(base.inner.fork());
            let mut manifest = open(&store, Duration::ZERO).unwrap();
            let mut acknowledged = manifest.state().clone();
            let mut in_doubt = None;
            store.set(how, requests);
            for number in edits..edits + 3 {
                match manifest.commit(edit(number)) {
                    Ok(()) => {
                        assert_eq!(in_doubt, None, "{case}: a commit after one that nobody knows of");
                        acknowledged.apply(edit(number));
                    }
                    Err(_) if manifest.is_closed() && in_doubt.is_none() => {
                        let mut after = acknowledged.clone();
                        after.apply(edit(number));
                        in_doubt = Some(after);
                    }
                    Err(_) => {}
                }
                assert_eq!(*manifest.state(), acknowledged, "{case}");
            }
            store.clear();
            let mut reopened = open(&store, Duration::ZERO).unwrap();
            let found = Some(reopened.state());
            assert!(found == Some(&acknowledged) || found == in_doubt.as_ref(), "{case}");
            reopened.commit(edit(edits + 5)).unwrap();
            assert!(matches!(manifest.commit(edit(edits + 6)), Err(Error::Closed { .. })), "{case}");
            assert_eq!(open(&store, Duration::ZERO).unwrap().state(), reopened.state(), "{case}");
        }
    }
}

#[test]
fn a_short_outage_is_not_noticed() {
    let store = Faulty::new();
    let mut manifest = open(&store, Duration::ZERO).unwrap();
    for (number, how) in (0..).zip([How::Before, How::After, How::Hangs, How::HangsAfter, How::Truncated, How::Late]) {
        store.set(how, 1..3);
        manifest.commit(edit(number)).unwrap();
    }
    store.clear();
    assert_eq!(open(&store, Duration::ZERO).unwrap().state(), manifest.state());
}

#[test]
fn what_could_not_be_read_whole_is_no_damage() {
    let store = Faulty::new();
    let mut manifest = open(&store, Duration::ZERO).unwrap();
    (0..130).for_each(|number| manifest.commit(edit(number)).unwrap());
    for (how, requests) in ALL.into_iter().flat_map(|how| failing().map(move |requests| (how, requests))) {
        let case = format!("{how:?} {requests:?}");
        store.set(how, requests);
        match open(&store, Duration::ZERO) {
            Ok(opened) => assert_eq!(opened.state(), manifest.state(), "{case}"),
            Err(error) => assert!(matches!(error, Error::Io { .. }), "{case}: {error}"),
        }
    }
}

#[test]
fn a_writer_that_stalled_runs_into_the_fence_however_far_the_other_has_gone() {
    let store = Faulty::new();
    let day = StoreOptions::default().settled_after;
    let mut stalled = open(&store, day).unwrap();
    let mut other = open(&store, day).unwrap();
    (0..400).for_each(|number| other.commit(edit(number)).unwrap());
    let own = ManifestEdit { databases_added: vec![("db".into(), 9)], ..edit(0) };
    let error = stalled.commit(own).unwrap_err().to_string();
    assert!(error.contains("another writer has written"), "{error}");
    assert!(matches!(stalled.commit(edit(0)), Err(Error::Closed { .. })));
    assert_eq!(open(&store, day).unwrap().state(), other.state());
}

#[test]
fn a_stream_that_is_begun_anew_fences_who_has_it_open() {
    for (how, requests) in ALL.into_iter().flat_map(|how| failing().map(move |requests| (how, requests))) {
        // The fence must not be removed while a thread may run into it.
        let day = StoreOptions::default().settled_after;
        let case = format!("{how:?} {requests:?}");
        let store = Faulty::new();
        let mut writer = open(&store, day).unwrap();
        writer.commit(edit(0)).unwrap();
        let (old, mut new) = (writer.state().clone(), ManifestState::default());
        new.apply(edit(0));
        new.apply(edit(1));
        store.set(how, requests);
        let begun = Manifest::write_anew_at(location(&store, day), new.clone());
        store.clear();
        let committed = writer.commit(edit(2)).is_ok();
        assert!(!(committed && begun.is_ok()), "{case}: two streams");
        let found = open(&store, day).unwrap().state().clone();
        let expected = if committed {
            writer.state()
        } else if begun.is_ok() {
            &new
        } else {
            &old
        };
        assert!(found == *expected || (begun.is_err() && !committed && found == new), "{case}: {found:?}");
    }
}

/// Two writers take turns on a store that fails now and then; the thread that is fenced or in doubt
/// opens the stream again.
#[test]
fn two_writers_that_fence_each_other_lose_no_commit() {
    for how in ALL {
        let store = Faulty::new();
        let mut first = open(&store, Duration::ZERO).unwrap();
        first.commit(edit(0)).unwrap();
        let mut writers = [first, open(&store, Duration::ZERO).unwrap()];
        let mut acknowledged = Vec::new();
        let mut fenced = 0;
        for number in 1..200_u64 {
            let turn = usize::from(number % 7 < 3);
            let first = 1 + number % 4;
            store.set(how, first..first + number % 5);
            let table = TableEdit { files_added: vec![Arc::new(file(number))], ..edit(1).tables.remove(0) };
            match writers[turn].commit(ManifestEdit { tables: vec![table], ..ManifestEdit::default() }) {
                Ok(()) => acknowledged.push(file(number).path),
                Err(error) => fenced += u64::from(matches!(error, Error::Closed { .. })),
            }
            store.clear();
            if writers[turn].is_closed() {
                writers[turn] = open(&store, Duration::ZERO).unwrap();
            }
        }
        let state = open(&store, Duration::ZERO).unwrap().state().clone();
        let found: Vec<_> = state.files().map(|file| file.path.clone()).collect();
        let missing: Vec<_> = acknowledged.iter().filter(|path| !found.contains(path)).collect();
        assert!(missing.is_empty(), "{how:?}: {missing:?}");
        assert!(fenced > 20 && acknowledged.len() > 20, "{how:?}: {fenced} fenced, {} done", acknowledged.len());
    }
}
