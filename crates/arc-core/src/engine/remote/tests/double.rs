//! An object store as one machine sees it: it can be stopped before or after any request, as by SIGSTOP, and
//! its requests can fail. Several machines share what is in it.

use std::{
    fmt,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{
    FutureExt, StreamExt,
    stream::{self, BoxStream},
};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, memory::InMemory, path::Path,
};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Random numbers (xorshift64*).
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}

/// How a put fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// It is not carried out.
    Before,
    /// It is carried out, and the answer is lost.
    After,
    /// There is never an answer, and it is not carried out.
    Hangs,
    /// There is never an answer, and it is carried out.
    HangsAfter,
    /// It fails, and is carried out some requests later.
    Late,
    /// It is told that there is one, and there is none: S3's conflict of two requests at once.
    Conflict,
}

pub(super) const ALL: [How; 6] = [How::Before, How::After, How::Hangs, How::HangsAfter, How::Late, How::Conflict];

/// What all machines share.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    inner: InMemory,
    requests: AtomicU64,
    late: Mutex<Vec<(u64, Path, PutPayload, PutOptions)>>,
}

/// The store as one machine sees it.
#[derive(Debug)]
pub(super) struct Seen {
    shelf: Arc<Shelf>,
    /// Whether requests wait.
    stopped: watch::Sender<bool>,
    faults: Mutex<Faults>,
}

#[derive(Debug)]
struct Faults {
    /// Puts until the machine is stopped, and whether that one is carried out first.
    stop_after: Option<(u64, bool)>,
    random: Random,
    /// How many of a hundred puts fail.
    failing: u64,
    /// All of them in the same way.
    forced: Option<How>,
    /// Nothing answers: neither puts nor others.
    gone: bool,
}

impl Shelf {
    pub(super) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Returns the store as another machine sees it.
    pub(super) fn seen(self: &Arc<Self>, seed: u64) -> Arc<Seen> {
        let random = Random::new(seed);
        let faults = Faults { stop_after: None, random, failing: 0, forced: None, gone: false };
        Arc::new(Seen { shelf: Arc::clone(self), stopped: watch::Sender::new(false), faults: Mutex::new(faults) })
    }

    /// Has everything arrive that is on its way.
    pub(super) fn settle(&self) {
        self.requests.fetch_add(1 << 32, Ordering::SeqCst);
        self.arrive();
    }

    /// Returns the names of all objects below a folder.
    pub(super) fn names(&self, folder: &str) -> Vec<String> {
        let listed = futures::executor::block_on(self.inner.list(Some(&folder.into())).collect::<Vec<_>>());
        listed.into_iter().map(|found| found.unwrap().location.to_string()).collect()
    }

    fn arrive(&self) {
        let now = self.requests.fetch_add(1, Ordering::SeqCst);
        let arrived: Vec<_> = self.late.lock().extract_if(.., |(at, ..)| *at <= now).collect();
        for (_, path, payload, options) in arrived {
            let _ = self.inner.put_opts(&path, payload, options).now_or_never();
        }
    }
}

impl Seen {
    /// Stops the machine at the `nth` put from now on, the first is 1; before or after it is carried
    /// out.
    pub(super) fn stop_at(&self, nth: u64, after: bool) {
        self.faults.lock().stop_after = Some((nth, after));
    }

    pub(super) fn is_stopped(&self) -> bool {
        *self.stopped.borrow()
    }

    /// Lets the machine go on.
    pub(super) fn resume(&self) {
        self.faults.lock().stop_after = None;
        self.stopped.send_replace(false);
    }

    pub(super) fn set_failing(&self, failing: u64) {
        self.faults.lock().failing = failing;
    }

    pub(super) fn force(&self, how: Option<How>) {
        self.faults.lock().forced = how;
    }

    pub(super) fn set_gone(&self, gone: bool) {
        self.faults.lock().gone = gone;
    }

    async fn enter(&self) -> Result<()> {
        self.go_on().await;
        self.shelf.arrive();
        if self.faults.lock().gone { Err(lost()) } else { Ok(()) }
    }

    /// Waits while the machine is stopped.
    async fn go_on(&self) {
        let _ = self.stopped.subscribe().wait_for(|stopped| !stopped).await;
    }

    /// Counts a put; returns whether the machine stops, and whether after it.
    fn stops(&self) -> Option<bool> {
        let mut faults = self.faults.lock();
        let (left, after) = faults.stop_after?;
        faults.stop_after = (left > 1).then_some((left - 1, after));
        drop(faults);
        (left == 1).then_some(after)
    }

    fn draw(&self) -> Option<How> {
        let mut faults = self.faults.lock();
        if faults.forced.is_some() {
            return faults.forced;
        }
        let (failing, drawn) = (faults.failing, faults.random.below(100));
        let kind = usize::try_from(faults.random.below(ALL.len() as u64)).unwrap();
        (drawn < failing).then(|| ALL[kind])
    }

    async fn put(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        match self.draw() {
            Some(How::Before) => return Err(lost()),
            Some(How::Hangs) => return std::future::pending().await,
            Some(How::Conflict) => {
                return Err(Error::AlreadyExists { path: path.to_string(), source: "409 conflict".into() });
            }
            Some(How::Late) => {
                let at = self.shelf.requests.load(Ordering::SeqCst) + self.faults.lock().random.below(12);
                self.shelf.late.lock().push((at, path.clone(), payload, options));
                return Err(lost());
            }
            Some(How::After) => return self.shelf.inner.put_opts(path, payload, options).await.and(Err(lost())),
            Some(How::HangsAfter) => {
                let _ = self.shelf.inner.put_opts(path, payload, options).await;
                return std::future::pending().await;
            }
            None => {}
        }
        self.shelf.inner.put_opts(path, payload, options).await
    }
}

fn lost() -> Error {
    Error::Generic { store: "Seen", source: "503 slow down".into() }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seen")
    }
}

#[async_trait]
impl ObjectStore for Seen {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.enter().await?;
        let stops = self.stops();
        if stops == Some(false) {
            self.stopped.send_replace(true);
            self.go_on().await;
        }
        let put = self.put(path, payload, options).await;
        if stops == Some(true) {
            self.stopped.send_replace(true);
            self.go_on().await;
        }
        put
    }

    async fn put_multipart_opts(&self, path: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.enter().await?;
        self.shelf.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.enter().await?;
        let got = self.shelf.inner.get_opts(path, options).await;
        self.go_on().await;
        got
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.enter().await?;
        self.shelf.inner.get_ranges(path, ranges).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        if self.faults.lock().gone {
            stream::iter([Err(lost())]).boxed()
        } else {
            self.shelf.inner.delete_stream(paths)
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.shelf.arrive();
        if self.faults.lock().gone { stream::iter([Err(lost())]).boxed() } else { self.shelf.inner.list(prefix) }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.enter().await?;
        self.shelf.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.shelf.inner.copy_opts(from, to, options).await
    }
}
