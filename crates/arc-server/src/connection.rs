//! One connection: which version of HTTP it speaks, how long it may be silent, and how it ends.
//!
//! HTTP/1.1 and HTTP/2 are told apart by the first bytes. Never looks into a request.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body};
use hyper::{Request, body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{net::TcpStream, sync::watch};
use tower::ServiceExt;

use crate::app::App;

/// How long a connection may wait for a request, or take to send its head.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Bytes of a connection of HTTP/1.1 that are read before they are asked for, at most; they are in no account. Also the most
/// that the head of a request may have.
const READ_AHEAD_BYTES: usize = 64 << 10;
/// How often a silent client of HTTP/2 is asked whether it is still there, and how long it may take to answer.
const PING_INTERVAL: Duration = Duration::from_secs(60);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes of one stream, and of one connection, that a client of HTTP/2 may send ahead of what is read.
const STREAM_WINDOW_BYTES: u32 = 2 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
/// Largest frame of HTTP/2; record batches are large, and each frame costs.
const FRAME_BYTES: u32 = 1 << 20;
/// Bytes of one stream of HTTP/2 that wait to be sent.
const SEND_BUFFER_BYTES: usize = 2 << 20;

/// Serves a connection until its client leaves, is silent for too long, or the sender of `stopped` is dropped.
pub(crate) async fn serve(app: &App, router: Router, stream: TcpStream, mut stopped: watch::Receiver<()>) {
    let _open = app.metrics.connection();
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot switch off Nagle's algorithm");
    }
    let asked = Arc::new(AtomicBool::new(false));
    let is_asking = Arc::clone(&asked);
    let service = service_fn(move |request: Request<Incoming>| {
        is_asking.store(true, Ordering::Relaxed);
        router.clone().oneshot(request.map(Body::new))
    });
    let builder = builder();
    let mut served = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let silence = async {
        tokio::time::sleep(IDLE_TIMEOUT).await;
        if asked.load(Ordering::Relaxed) {
            // From the first request on, the protocol has timers of its own.
            std::future::pending::<()>().await;
        }
    };
    let result = tokio::select! {
        result = served.as_mut() => result,
        () = silence => return tracing::debug!("a connection did not ask for anything"),
        // The sender is dropped when the server stops; nothing is ever sent.
        _ = stopped.changed() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(error = crate::errors::chain(&*error), "connection broke");
    }
}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE_TIMEOUT).max_buf_size(READ_AHEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
        .max_send_buf_size(SEND_BUFFER_BYTES);
    builder
}
