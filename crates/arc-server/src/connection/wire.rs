//! The socket of a connection of HTTP/1.1, and whether the connection is at rest.
//!
//! Never looks into a request; only says whether one is under way and whether all of an answer was sent.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use axum::body::Body;
use bytes::{Buf, Bytes};
use hyper::body::{Frame, SizeHint};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// What a connection is doing.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Requests begun and answers ended: equal between two requests.
    begun: AtomicU64,
    ended: AtomicU64,
    /// Whether something was read since the last answer ended.
    has_read: AtomicBool,
    /// Whether something is in hyper's hands that the socket did not take yet.
    is_unsent: AtomicBool,
}

impl Activity {
    pub(super) fn begin(self: &Arc<Self>) -> Answering {
        self.begun.fetch_add(1, Ordering::Relaxed);
        Answering(Arc::clone(self))
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed) > 0
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
pub(super) struct Answering(Arc<Activity>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.has_read.store(false, Ordering::Relaxed);
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// An answer's body, with the request that it belongs to.
#[derive(Debug)]
pub(super) struct AnswerBody {
    pub(super) body: Body,
    pub(super) _answering: Answering,
}

impl hyper::body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
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
    pub(super) stream: TcpStream,
    pub(super) ahead: Bytes,
    pub(super) activity: Arc<Activity>,
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
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.activity.is_unsent.store(true, Ordering::Relaxed);
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // Called when nothing is left to be written, and only then.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.activity.is_unsent.store(false, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
