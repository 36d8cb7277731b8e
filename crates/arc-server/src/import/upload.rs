//! A file in a multipart form: taken out of the request as it comes, and laid down where no one else finds it.
//!
//! Form: RFC 7578. Only the part called `file` is kept, and never in memory.

use std::{
    fs::File,
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use axum::body::{Body, BodyDataStream};
use bytes::Bytes;
use futures::Stream;
use hyper::{HeaderMap, header};
use multer::{Constraints, Multipart, SizeLimit};
use tokio::io::AsyncWriteExt;

use crate::{
    admission::Reservation,
    body::{Caps, Pace},
    errors::{Failure, chain, status_of_io},
};

/// What there may be around a file: heads of parts, and other parts.
const AROUND_BYTES: u64 = 64 << 10;

/// What an import reads.
#[derive(Debug)]
pub(super) struct Upload {
    /// As the client calls it.
    pub(super) name: String,
    pub(super) file: File,
}

/// Bytes of a form that are read ahead of what is taken out of it.
const AHEAD_BYTES: u64 = 256 << 10;
/// Most bytes of a form that are kept because no part of it has come yet.
const MAX_KEPT_BYTES: u64 = 1 << 20;

/// Where what has come has its reservations: in memory, and on disk.
#[derive(Debug)]
pub(super) struct Reservations {
    pub(super) memory: Reservation,
    pub(super) disk: Reservation,
}

/// Reads the part `file` of a form into `file`.
pub(super) async fn receive(
    headers: &HeaderMap,
    body: Body,
    file: File,
    limits: Caps,
    reservations: &mut Reservations,
) -> Result<Upload, Failure> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let boundary = multer::parse_boundary(content_type)
        .map_err(|_| Failure::bad_request("expected multipart/form-data with a boundary and a part called file"))?;
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let most = u64::try_from(limits.limit).unwrap_or(u64::MAX).saturating_add(AROUND_BYTES);
    if announced.is_some_and(|bytes| bytes > most) {
        return Err(too_large(limits));
    }
    let constraints = Constraints::new().size_limit(SizeLimit::new().whole_stream(most));
    let counts = Arc::new(Counts::default());
    let body = Measured { body: body.into_data_stream(), counts: Arc::clone(&counts), at_once: 0, largest: 0 };
    let mut form = Multipart::with_constraints(body, boundary, constraints);
    let mut waiting = Waiting { pace: Pace::new(limits.pause), counts, limits };
    loop {
        let part = waiting.wait(form.next_field()).await?;
        let mut part = part.ok_or_else(|| Failure::bad_request("the form has no part called file"))?;
        if part.name() != Some("file") {
            continue;
        }
        let name = part.file_name().unwrap_or("upload").to_owned();
        let (mut file, mut written) = (tokio::fs::File::from_std(file), 0);
        while let Some(bytes) = waiting.wait(part.chunk()).await? {
            written += bytes.len();
            waiting.counts.taken.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            reservations.memory.grow_to(bytes.len()).await?;
            reservations.disk.grow_to(written).await?;
            file.write_all(&bytes).await.map_err(|error| unwritable(&error))?;
        }
        file.flush().await.map_err(|error| unwritable(&error))?;
        return Ok(Upload { name, file: file.into_std().await });
    }
}

/// Bytes of a form that have come, and those of them that were taken out of it.
#[derive(Debug, Default)]
struct Counts {
    come: AtomicU64,
    taken: AtomicU64,
}

/// A body that comes no faster than it is taken: the library that reads forms would gather all that is there.
struct Measured {
    body: BodyDataStream,
    counts: Arc<Counts>,
    /// Bytes since it was last said that there are no more for now.
    at_once: u64,
    /// Bytes of the largest piece, which is kept as a whole.
    largest: u64,
}

impl Stream for Measured {
    type Item = Result<Bytes, io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.at_once > AHEAD_BYTES {
            self.at_once = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let kept = self.counts.come.load(Ordering::Relaxed).saturating_sub(self.counts.taken.load(Ordering::Relaxed));
        if kept > MAX_KEPT_BYTES + self.largest {
            let text = format!("what stands around its parts takes more than {MAX_KEPT_BYTES} bytes");
            return Poll::Ready(Some(Err(io::Error::other(text))));
        }
        let next = Pin::new(&mut self.body).poll_next(cx).map_err(io::Error::other);
        match &next {
            Poll::Ready(Some(Ok(bytes))) => {
                self.at_once += bytes.len() as u64;
                self.largest = self.largest.max(bytes.len() as u64);
                self.counts.come.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            }
            _ => self.at_once = 0,
        }
        next
    }
}

/// Waits for a client.
struct Waiting {
    pace: Pace,
    counts: Arc<Counts>,
    limits: Caps,
}

impl Waiting {
    /// Waits for more of a form.
    async fn wait<T>(&mut self, next: impl Future<Output = multer::Result<T>>) -> Result<T, Failure> {
        let before = self.counts.come.load(Ordering::Relaxed);
        let next = self.pace.wait("request body", next).await?;
        let come = self.counts.come.load(Ordering::Relaxed) - before;
        self.pace.came(usize::try_from(come).unwrap_or(usize::MAX));
        next.map_err(|error| match error {
            multer::Error::StreamSizeExceeded { .. } => too_large(self.limits),
            error => Failure::bad_request(format!("the form is not whole: {}", chain(&error))),
        })
    }
}

fn too_large(limits: Caps) -> Failure {
    Failure::too_large(format!("the file is larger than {} bytes (max_import_bytes)", limits.limit))
}

fn unwritable(error: &io::Error) -> Failure {
    Failure::new(status_of_io(error), format!("cannot lay the file down: {error}"))
}
