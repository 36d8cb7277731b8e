//! What an answer over HTTP/1.1 leaves unread of its request's body.
//!
//! hyper closes a connection on which part of a body is still to come, and says nothing about it: a client that sends head and
//! body one after the other, as most do, would take the connection for open and lose its next request.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::{Body, Bytes};
use hyper::{
    Request, Response, Version,
    body::{Body as _, Frame, Incoming, SizeHint},
    header::{self, HeaderValue},
};
use tokio::{sync::oneshot, time::timeout};

/// Most bytes that are read for nothing so that the connection can be kept, and how long they may take.
const MOST_BYTES: usize = 1 << 20;
const MOST_TIME: Duration = Duration::from_secs(1);

/// A body that comes back to [`Unread`] when it is dropped before its end.
struct LentBody(Option<(Incoming, oneshot::Sender<Incoming>)>);

impl hyper::body::Body for LentBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let Some((body, _)) = &mut self.0 else { return Poll::Ready(None) };
        let next = ready!(Pin::new(body).poll_frame(cx));
        if !matches!(next, Some(Ok(_))) {
            self.0 = None;
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|(body, _)| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(|| SizeHint::with_exact(0), |(body, _)| body.size_hint())
    }
}

impl Drop for LentBody {
    fn drop(&mut self) {
        if let Some((body, back)) = self.0.take().filter(|(body, _)| !body.is_end_stream()) {
            // Of a request whose answer is given up, too, the rest is of no use.
            drop(back.send(body));
        }
    }
}

/// Waits for the rest of a body.
pub(super) struct Unread {
    back: oneshot::Receiver<Incoming>,
    /// Whether the client sends its body only when it is asked to.
    is_asked_first: bool,
}

/// Returns the request, and what settles its body once it is answered: nothing if it has none, or needs none over HTTP/2.
pub(super) fn lend(request: Request<Incoming>) -> (Request<Body>, Option<Unread>) {
    if request.version() > Version::HTTP_11 || request.body().is_end_stream() {
        return (request.map(Body::new), None);
    }
    let is_asked_first = request.headers().contains_key(header::EXPECT);
    let (sender, back) = oneshot::channel();
    let lent = request.map(|body| Body::new(LentBody(Some((body, sender)))));
    (lent, Some(Unread { back, is_asked_first }))
}

impl Unread {
    /// Reads the rest of the body if it is short, so that the connection can be kept; otherwise says in the answer that it ends.
    pub(super) async fn settle<B>(mut self, answer: &mut Response<B>) {
        let is_read = match self.back.try_recv() {
            Err(oneshot::error::TryRecvError::Closed) => true,
            Err(oneshot::error::TryRecvError::Empty) => false,
            Ok(body) => !self.is_asked_first && timeout(MOST_TIME, is_read(body)).await.unwrap_or(false),
        };
        if !is_read {
            answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

/// Reads a body; returns whether it ended within [`MOST_BYTES`].
async fn is_read(mut body: Incoming) -> bool {
    let mut left = MOST_BYTES;
    while body.size_hint().lower() <= left as u64 {
        match std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            None => return true,
            Some(Err(_)) => return false,
            Some(Ok(frame)) => match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
                Some(less) => left = less,
                None => return false,
            },
        }
    }
    false
}
