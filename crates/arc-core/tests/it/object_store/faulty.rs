//! An object store with weather: whether a request fails, and how, is drawn from a seed. Time
//! passes by requests.

use std::{
    collections::BTreeMap,
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
    future::pending,
    stream::{self, BoxStream},
};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart, memory::InMemory, path::Path,
};
use parking_lot::Mutex;

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum How {
    /// It is not carried out: a lost connection, a 503.
    Before,
    /// It is carried out, and the answer is lost.
    After,
    /// There is never an answer, and it is not carried out.
    Hangs,
    /// There is never an answer, and it is carried out.
    HangsAfter,
    /// Half of a body comes, or is stored, and the answer says that all is well.
    Truncated,
    /// A put fails, and is carried out some requests later.
    Late,
}

pub(crate) const ALL: [How; 6] = [How::Before, How::After, How::Hangs, How::HangsAfter, How::Truncated, How::Late];

/// What kinds of requests there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Request {
    Put,
    Part,
    Complete,
    Get,
    List,
    Delete,
}

/// Random numbers (xorshift64*).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}

#[derive(Debug)]
struct Weather {
    random: Random,
    /// How many of a hundred requests fail, and for how many requests more.
    failing: u64,
    left: u64,
    /// Only this failure, and for as long as it is set.
    forced: Option<How>,
    clear: bool,
    holds_commits: bool,
}

impl Weather {
    fn next(&mut self, request: Request) -> Option<How> {
        if let Some(how) = self.forced {
            return Some(how);
        }
        if self.clear {
            return None;
        }
        if self.left == 0 {
            // Fair, rough, or nothing at all goes through.
            self.failing = [0, 0, 10, 40, 100][usize::try_from(self.random.below(5)).unwrap()];
            self.left = 1 + self.random.below(30);
        }
        self.left -= 1;
        // There are few of these.
        let failing = if request == Request::Complete { self.failing.max(50) } else { self.failing };
        let fails = self.random.below(100) < failing;
        fails.then(|| ALL[usize::try_from(self.random.below(6)).unwrap()])
    }
}

/// A put that is on its way: it arrives once so many requests were made.
#[derive(Debug)]
struct Late {
    at: u64,
    location: Path,
    payload: PutPayload,
    options: PutOptions,
}

/// [`InMemory`] with weather.
#[derive(Debug)]
pub(crate) struct Faulty {
    pub(crate) inner: Arc<InMemory>,
    sky: Arc<Sky>,
}

#[derive(Debug)]
struct Sky {
    weather: Mutex<Weather>,
    late: Mutex<Vec<Late>>,
    requests: AtomicU64,
    failed: Mutex<BTreeMap<(Request, How), u64>>,
}

impl Faulty {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        let weather = Weather {
            random: Random::new(seed),
            failing: 0,
            left: 0,
            forced: None,
            clear: false,
            holds_commits: false,
        };
        let sky = Sky {
            weather: Mutex::new(weather),
            late: Mutex::default(),
            requests: AtomicU64::new(0),
            failed: Mutex::default(),
        };
        Arc::new(Self { inner: Arc::default(), sky: Arc::new(sky) })
    }

    /// From now on nothing fails, or what the seed says.
    pub(crate) fn set_clear(&self, clear: bool) {
        let mut weather = self.sky.weather.lock();
        (weather.clear, weather.forced, weather.holds_commits) = (clear, None, false);
    }

    /// From now on every request fails in this way.
    pub(crate) fn force(&self, how: How) {
        self.sky.weather.lock().forced = Some(how);
    }

    /// From now on no commit of the manifest is answered; each is on its way until everything
    /// settles.
    pub(crate) fn hold_commits(&self) {
        self.sky.weather.lock().holds_commits = true;
    }

    /// Lets everything arrive that is on its way.
    pub(crate) fn settle(&self) {
        let late = std::mem::take(&mut *self.sky.late.lock());
        for put in late {
            let _ = self.inner.put_opts(&put.location, put.payload, put.options).now_or_never();
        }
    }

    /// How often which request has failed in which way.
    pub(crate) fn failed(&self) -> BTreeMap<(Request, How), u64> {
        self.sky.failed.lock().clone()
    }

    /// Counts a request, and says how it fails. What is late enough arrives.
    fn enter(&self, request: Request) -> Option<How> {
        let number = self.sky.requests.fetch_add(1, Ordering::SeqCst);
        let arrived: Vec<Late> = self.sky.late.lock().extract_if(.., |late| late.at <= number).collect();
        for put in arrived {
            let _ = self.inner.put_opts(&put.location, put.payload, put.options).now_or_never();
        }
        self.sky.draw(request)
    }
}

impl Sky {
    fn draw(&self, request: Request) -> Option<How> {
        let how = self.weather.lock().next(request);
        if let Some(how) = how {
            *self.failed.lock().entry((request, how)).or_default() += 1;
        }
        how
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

fn lost() -> Error {
    Error::Generic { store: "Faulty", source: "503 slow down".into() }
}

fn half(payload: &PutPayload) -> PutPayload {
    let bytes: Vec<u8> = payload.iter().flat_map(|part| part.iter().copied()).collect();
    bytes[..bytes.len() / 2].to_vec().into()
}

/// Makes the answer to a request that was carried out.
async fn answered<T>(how: Option<How>, done: Result<T>) -> Result<T> {
    match how {
        Some(How::After) => Err(lost()),
        Some(How::HangsAfter) => pending().await,
        _ => done,
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let how = self.enter(Request::Put);
        // A commit that is stored by half, and said to be whole, is no failure but a lie.
        let is_data = location.as_ref().contains("/data/");
        if !is_data && self.sky.weather.lock().holds_commits {
            self.sky.late.lock().push(Late { at: u64::MAX, location: location.clone(), payload, options });
            return Err(lost());
        }
        match how {
            Some(How::Before) => return Err(lost()),
            Some(How::Hangs) => return pending().await,
            Some(How::Truncated) if is_data => return self.inner.put_opts(location, half(&payload), options).await,
            Some(How::Truncated) => return Err(lost()),
            Some(How::Late) => {
                let at = self.sky.requests.load(Ordering::SeqCst) + self.sky.weather.lock().random.below(20);
                self.sky.late.lock().push(Late { at, location: location.clone(), payload, options });
                return Err(lost());
            }
            Some(How::After | How::HangsAfter) | None => {}
        }
        let put = self.inner.put_opts(location, payload, options).await;
        answered(how, put).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        match self.enter(Request::Part) {
            Some(How::Hangs | How::HangsAfter) => pending().await,
            Some(_) => Err(lost()),
            None => {
                let inner = self.inner.put_multipart_opts(location, options).await?;
                Ok(Box::new(FaultyUpload { inner, sky: Arc::clone(&self.sky) }))
            }
        }
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let how = self.enter(Request::Get);
        let head = options.head;
        let got = self.inner.get_opts(location, options).await?;
        match how {
            None => Ok(got),
            Some(How::Truncated) if !head => {
                let (meta, range, attributes) = (got.meta.clone(), got.range.clone(), got.attributes.clone());
                let bytes = got.bytes().await?;
                let payload = GetResultPayload::Stream(stream::iter([Ok(bytes.slice(..bytes.len() / 2))]).boxed());
                Ok(GetResult { payload, meta, range, attributes })
            }
            Some(How::Hangs | How::HangsAfter) => pending().await,
            Some(_) => Err(lost()),
        }
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let how = self.enter(Request::Get);
        let mut got = self.inner.get_ranges(location, ranges).await?;
        match how {
            None => Ok(got),
            Some(How::Truncated) => {
                if let Some(last) = got.last_mut() {
                    *last = last.slice(..last.len() / 2);
                }
                Ok(got)
            }
            Some(How::Hangs | How::HangsAfter) => pending().await,
            Some(_) => Err(lost()),
        }
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        match self.enter(Request::Delete) {
            None => self.inner.delete_stream(locations),
            Some(How::After) => {
                let done = self.inner.delete_stream(locations);
                done.map(|_| Err(lost())).boxed()
            }
            Some(How::Hangs) => stream::pending().boxed(),
            Some(How::HangsAfter) => self.inner.delete_stream(locations).then(|_| pending()).boxed(),
            Some(_) => stream::iter([Err(lost())]).boxed(),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.enter(Request::List) {
            None => self.inner.list(prefix),
            Some(How::Hangs | How::HangsAfter) => stream::pending().boxed(),
            // The first page, and then nothing more.
            Some(How::Truncated) => self.inner.list(prefix).take(1).chain(stream::iter([Err(lost())])).boxed(),
            Some(_) => stream::iter([Err(lost())]).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        match self.enter(Request::List) {
            None => self.inner.list_with_delimiter(prefix).await,
            Some(How::Hangs | How::HangsAfter) => pending().await,
            Some(_) => Err(lost()),
        }
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        unreachable!("the engine copies no objects")
    }
}

/// An upload in parts, with the same weather.
#[derive(Debug)]
struct FaultyUpload {
    inner: Box<dyn MultipartUpload>,
    sky: Arc<Sky>,
}

#[async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let how = self.sky.draw(Request::Part);
        match how {
            Some(How::Before | How::Late) => async { Err(lost()) }.boxed(),
            Some(How::Hangs) => pending().boxed(),
            Some(How::Truncated) => self.inner.put_part(half(&data)),
            Some(How::After | How::HangsAfter) | None => {
                let part = self.inner.put_part(data);
                async move { answered(how, part.await).await }.boxed()
            }
        }
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let how = self.sky.draw(Request::Complete);
        match how {
            Some(How::Before | How::Late | How::Truncated) => Err(lost()),
            Some(How::Hangs) => pending().await,
            Some(How::After | How::HangsAfter) | None => answered(how, self.inner.complete().await).await,
        }
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}
