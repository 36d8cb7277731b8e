//! The socket of a connection of HTTP/1.1, and whether the connection is at rest.
//!
//! Never looks into a request; only says whether one is under way and whether all of an answer was sent.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use axum::body::Body;
use bytes::{Buf, Bytes};
use hyper::body::{Frame, SizeHint};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use crate::tls::Stream;

/// What a connection is doing.
#[derive(Debug)]
pub(super) struct Activity {
    since: Instant,
    /// Requests begun and answers ended: equal between two requests.
    begun: AtomicU64,
    ended: AtomicU64,
    /// Whether something was read since the last answer ended.
    has_read: AtomicBool,
    /// Whether something is in hyper's hands that the socket did not take yet.
    is_unsent: AtomicBool,
    /// The answers under way.
    answers: Mutex<Vec<Weak<Offered>>>,
}

/// Since when a client has been offered more of an answer without taking it: milliseconds of the connection, one more than there
/// were; 0 while it waits for the server.
#[derive(Debug, Default)]
struct Offered(AtomicU64);

impl Default for Activity {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            has_read: AtomicBool::new(false),
            is_unsent: AtomicBool::new(false),
            answers: Mutex::default(),
        }
    }
}

impl Activity {
    pub(super) fn begin(self: &Arc<Self>) -> Answering {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let offered = Arc::default();
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.retain(|answer| answer.strong_count() > 0);
        answers.push(Arc::downgrade(&offered));
        Answering { activity: Arc::clone(self), offered }
    }

    /// Returns how many requests there were, if none is under way.
    pub(super) fn idle(&self) -> Option<u64> {
        let ended = self.ended.load(Ordering::Relaxed);
        (self.begun.load(Ordering::Relaxed) == ended).then_some(ended)
    }

    /// Returns whether a client has taken nothing of an answer for longer than `most`.
    pub(super) fn is_stuck(&self, most: Duration) -> bool {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut offered = answers.iter().filter_map(Weak::upgrade).map(|answer| answer.0.load(Ordering::Relaxed));
        let now = self.now();
        offered.any(|since| since > 0 && Duration::from_millis(now.saturating_sub(since)) > most)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
    }

    /// Returns the number of answers given, if the connection waits for its next request, of which nothing is there.
    pub(super) fn at_rest(&self) -> Option<u64> {
        let ended = self.ended.load(Ordering::Relaxed);
        let is_quiet = !self.has_read.load(Ordering::Relaxed) && !self.is_unsent.load(Ordering::Relaxed);
        (ended > 0 && self.begun.load(Ordering::Relaxed) == ended && is_quiet).then_some(ended)
    }
}

/// A request under way; dropped when its answer is, which is when hyper has taken all of it.
#[derive(Debug)]
pub(super) struct Answering {
    activity: Arc<Activity>,
    offered: Arc<Offered>,
}

impl Answering {
    /// Notes whether it is the client's turn.
    pub(super) fn offer(&self, is_offered: bool) {
        let since = if is_offered { self.activity.now() } else { 0 };
        self.offered.0.store(since, Ordering::Relaxed);
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.activity.has_read.store(false, Ordering::Relaxed);
        self.activity.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// An answer's body, with the request that it belongs to.
#[derive(Debug)]
pub(super) struct AnswerBody {
    pub(super) body: Body,
    pub(super) answering: Answering,
}

impl hyper::body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let next = Pin::new(&mut self.body).poll_frame(cx);
        self.answering.offer(next.is_ready());
        next
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A socket, in front of it bytes that were read of it already.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) stream: Stream,
    pub(super) ahead: Bytes,
    pub(super) activity: Arc<Activity>,
    /// How long the socket may take nothing of what is to be sent, and the timer while it does so.
    pub(super) patience: Duration,
    pub(super) stuck: Option<Pin<Box<Sleep>>>,
}

impl Wire {
    /// Ends a write that the client has not let through for too long.
    fn bounded(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let patience = self.patience;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(stuck.as_mut().poll(cx));
        let text = format!("the client took nothing of its answer for {patience:?} (send_timeout)");
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, text)))
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            let before = buf.filled().len();
            ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
            if buf.filled().len() == before {
                return Poll::Ready(Ok(()));
            }
        } else {
            let count = self.ahead.len().min(buf.remaining());
            buf.put_slice(self.ahead.get(..count).unwrap_or_default());
            self.ahead.advance(count);
        }
        self.activity.has_read.store(true, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.activity.is_unsent.store(true, Ordering::Relaxed);
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.bounded(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.activity.is_unsent.store(true, Ordering::Relaxed);
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.bounded(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // Called when nothing is left to be written, and only then.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // What TLS has in hand is sent here.
        let flushed = Pin::new(&mut self.stream).poll_flush(cx).map_ok(|()| 0);
        ready!(self.bounded(cx, flushed))?;
        self.activity.is_unsent.store(false, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
