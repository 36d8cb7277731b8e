//! An object store that is cut off after some requests, or whose own copies are not what they should be.

use std::{
    fmt,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, memory::InMemory, path::Path,
};
use parking_lot::Mutex;

/// What becomes of the requests after the last that goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// None is carried out.
    Before,
    /// The first one is carried out, and not answered; none after it.
    After,
    /// Copies have half of the bytes.
    CopiesHalf,
    /// Copies have one other byte.
    CopiesOther,
    /// Copies are answered, and not made.
    CopiesNothing,
    /// The store makes no copies.
    CannotCopy,
}

type Act = Box<dyn FnOnce() + Send>;

/// [`InMemory`] that can be cut off.
#[derive(Clone, Default)]
pub(super) struct CutStore {
    inner: Arc<InMemory>,
    /// Requests that still go through, and how they end then.
    left: Arc<AtomicI64>,
    cut: Arc<Mutex<Option<Cut>>>,
    before_list: Arc<Mutex<Option<(&'static str, Act)>>>,
}

impl CutStore {
    /// Cuts the store off after so many requests, or has it copy in this way.
    pub(super) fn cut_after(&self, requests: i64, cut: Cut) {
        self.left.store(requests, Ordering::SeqCst);
        *self.cut.lock() = Some(cut);
    }

    /// From now on all goes through again; returns whether any did not.
    pub(super) fn mend(&self) -> bool {
        let was_cut = matches!(self.cut.lock().take(), Some(Cut::Before | Cut::After));
        was_cut && self.left.load(Ordering::SeqCst) < 0
    }

    /// Calls `act` once, before the next list of what is below a prefix is answered.
    pub(super) fn act_before_list(&self, prefix: &'static str, act: impl FnOnce() + Send + 'static) {
        *self.before_list.lock() = Some((prefix, Box::new(act)));
    }

    /// Counts a request; returns whether it is carried out, and whether it is answered.
    fn enter(&self) -> (bool, bool) {
        match *self.cut.lock() {
            Some(cut @ (Cut::Before | Cut::After)) => {
                let left = self.left.fetch_sub(1, Ordering::SeqCst);
                (left > 0 || (left == 0 && cut == Cut::After), left > 0)
            }
            _ => (true, true),
        }
    }

    fn check(&self) -> Result<bool> {
        match self.enter() {
            (false, _) => Err(lost()),
            (true, is_answered) => Ok(is_answered),
        }
    }
}

fn lost() -> Error {
    Error::Generic { store: "CutStore", source: "connection lost".into() }
}

impl fmt::Debug for CutStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CutStore")
    }
}

impl fmt::Display for CutStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CutStore")
    }
}

#[async_trait]
impl ObjectStore for CutStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let is_answered = self.check()?;
        let put = self.inner.put_opts(location, payload, options).await;
        if is_answered { put } else { Err(lost()) }
    }

    async fn put_multipart_opts(&self, at: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.check()?;
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if !self.check()? {
            return Err(lost());
        }
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if !self.check()? {
            return Err(lost());
        }
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        match self.check() {
            Ok(_) => self.inner.delete_stream(locations),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let is_it = |(of, _): &mut (&'static str, Act)| prefix.is_some_and(|prefix| prefix.as_ref() == *of);
        let act = self.before_list.lock().take_if(is_it);
        if let Some((_, act)) = act {
            // On a thread of its own: it waits for requests of its own.
            std::thread::spawn(act).join().unwrap();
        }
        match self.check() {
            Ok(true) => self.inner.list(prefix),
            _ => stream::iter([Err(lost())]).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        if !self.check()? {
            return Err(lost());
        }
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let is_answered = self.check()?;
        let bytes = self.inner.get(from).await?.bytes().await?;
        let cut = *self.cut.lock();
        match cut {
            Some(Cut::CopiesHalf) => drop(self.inner.put(to, bytes.slice(..bytes.len() / 2).into()).await?),
            Some(Cut::CopiesOther) => {
                let mut bytes = bytes.to_vec();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                self.inner.put(to, bytes.into()).await?;
            }
            Some(Cut::CopiesNothing) => {}
            Some(Cut::CannotCopy) => {
                return Err(Error::NotSupported { source: "no copies".into() });
            }
            _ => self.inner.copy_opts(from, to, options).await?,
        }
        if is_answered { Ok(()) } else { Err(lost()) }
    }
}
