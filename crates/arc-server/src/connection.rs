//! One connection: which version of HTTP it speaks, how long it may be silent, and how it ends.
//!
//! HTTP/1.1 and HTTP/2 are told apart by the first bytes. A connection of HTTP/1.1 that rests gives its buffers back: hyper keeps
//! 16 KiB for each from its first request on, so it is taken apart, and put together again when something comes. Never looks into
//! a request.

mod unread;
mod wire;

use std::{convert::Infallible, future::poll_fn, io, pin::Pin, sync::Arc, time::Duration};

use axum::Router;
use bytes::Bytes;
use futures::future::BoxFuture;
use hyper::{
    Request, Response,
    body::Incoming,
    server::conn::{http1, http2},
    service::{Service, service_fn},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::AsyncReadExt,
    net::TcpStream,
    sync::{Semaphore, watch},
    time::{Instant, sleep, timeout},
};
use tower::ServiceExt;

use self::wire::{Activity, AnswerBody, Wire};
use crate::{
    app::App,
    auth::FarEnd,
    tls::{self, Stream, Tls},
    workers,
};

/// What a client of HTTP/2 begins with.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Time without a request after which a connection of HTTP/1.1 gives its buffers back; it may take twice that, and after a
/// long request up to [`LONGEST_LOOK`] more. Short, so that thousands of clients that write now and then do not hold buffers all
/// at once; clients that write one request after the other never come to rest.
const REST_AFTER: Duration = Duration::from_millis(50);
/// Longest time between two looks at a connection that is not at rest.
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// How long a connection may wait for a request, or take to send its head.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a connection may take to send its first byte: one that says nothing has a place that others want.
const FIRST_TIMEOUT: Duration = Duration::from_secs(10);
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
/// Requests of one connection of HTTP/2 at a time.
const STREAMS: u32 = 200;
/// The share of the memory budget that may lie unread in the windows above. Connections beyond that get the windows below: they
/// send as fast where the way is short.
const WINDOW_SHARE: usize = 16;
const NARROW_WINDOW_BYTES: u32 = 64 << 10;
const NARROW_STREAMS: u32 = 32;
/// How often a connection of HTTP/2 is looked at for whether anything happens on it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Returns how many connections may have large windows in a process with this budget.
pub(crate) fn wide_windows(memory_bytes: usize) -> usize {
    (memory_bytes / WINDOW_SHARE / CONNECTION_WINDOW_BYTES as usize).max(4)
}

/// How long a connection may take for what.
#[derive(Debug, Clone, Copy)]
struct ConnectionTimes {
    rest_after: Duration,
    first: Duration,
    idle: Duration,
    send: Duration,
}

/// Serves a connection until its client leaves, is silent for too long, or the sender of `stopped` is dropped.
pub(crate) async fn serve(
    app: &App,
    tls: Option<&Arc<Tls>>,
    router: Router,
    stream: TcpStream,
    mut stopped: watch::Receiver<()>,
) {
    let _open = app.metrics.connection();
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot switch off Nagle's algorithm");
    }
    let peer = FarEnd { address: stream.peer_addr().ok(), refusals: Arc::clone(&app.metrics.refusals) };
    let accepted = tokio::select! {
        accepted = tls::accept(tls, stream) => accepted,
        // The sender is dropped when the server stops; nothing is ever sent.
        _ = stopped.changed() => return,
    };
    let Some(stream) = accepted else { return };
    let times = ConnectionTimes {
        rest_after: REST_AFTER,
        first: FIRST_TIMEOUT,
        idle: IDLE_TIMEOUT,
        send: app.limits.send_timeout,
    };
    serve_and_rest((router, peer), stream, stopped, times, &app.wide_windows).await;
}

async fn serve_and_rest(
    (router, peer): (Router, FarEnd),
    stream: Stream,
    mut stopped: watch::Receiver<()>,
    times: ConnectionTimes,
    wide: &Arc<Semaphore>,
) {
    let mut resting = Some((stream, Bytes::new()));
    let mut patience = times.first;
    while let Some((mut stream, mut ahead)) = resting.take() {
        if ahead.is_empty() {
            ahead = tokio::select! {
                begun = timeout(patience, beginning(&mut stream)) => match begun {
                    Ok(Ok(bytes)) => bytes,
                    Ok(Err(error)) => return tracing::debug!(%error, "connection broke"),
                    Err(_) => return tracing::debug!("a connection did not ask for anything"),
                },
                // The sender is dropped when the server stops; nothing is ever sent.
                _ = stopped.changed() => return,
            };
        }
        if ahead.is_empty() {
            return;
        }
        patience = times.idle;
        let is_http2 = ahead == PREFACE.as_slice();
        let wire = Wire { stream, ahead, activity: Arc::default(), patience: times.send, stuck: None };
        // In boxes, so that a connection at rest is not as large as one of either kind.
        let served = if is_http2 {
            let window = Arc::clone(wide).try_acquire_owned().ok();
            let builder = http2_builder(window.is_some());
            let served = Box::pin(serve_http2((router.clone(), &peer), wire, &mut stopped, times, &builder)).await;
            drop(window);
            served.map(|()| None)
        } else {
            Box::pin(serve_http1((router.clone(), &peer), wire, &mut stopped, times.rest_after)).await
        };
        match served {
            Ok(at_rest) => {
                resting = at_rest;
                workers::note_rest();
            }
            Err(error) => tracing::debug!(error = crate::errors::chain(&error), "connection broke"),
        }
    }
}

/// Reads until it is clear whether the client speaks HTTP/2; returns what was read, nothing if the client has left.
async fn beginning(stream: &mut Stream) -> io::Result<Bytes> {
    let mut bytes = [0; PREFACE.len()];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let count = stream.read(rest).await?;
        filled += count;
        if count == 0 || bytes.get(..filled) != PREFACE.get(..filled) {
            break;
        }
    }
    Ok(Bytes::copy_from_slice(bytes.get(..filled).unwrap_or_default()))
}

/// Serves requests until the connection ends, or rests: then it is given back, with what was read of the next request.
async fn serve_http1(
    (router, peer): (Router, &FarEnd),
    wire: Wire,
    stopped: &mut watch::Receiver<()>,
    rest_after: Duration,
) -> hyper::Result<Option<(Stream, Bytes)>> {
    let activity = Arc::clone(&wire.activity);
    let service = service(router, peer, &activity);
    let mut connection = http1_builder().serve_connection(TokioIo::new(wire), service);
    let (mut rests_since, mut look_after) = (None, rest_after);
    loop {
        tokio::select! {
            ended = &mut connection => return ended.map(|()| None),
            _ = stopped.changed() => {
                Pin::new(&mut connection).graceful_shutdown();
                return connection.await.map(|()| None);
            }
            () = tokio::time::sleep(look_after) => {}
        }
        let at_rest = activity.at_rest();
        if at_rest.is_some() && at_rest == rests_since {
            break;
        }
        rests_since = at_rest;
        look_after = if at_rest.is_some() { rest_after } else { (look_after * 2).min(LONGEST_LOOK) };
    }
    // Between two requests this ends nothing but hyper's part in the connection.
    Pin::new(&mut connection).graceful_shutdown();
    poll_fn(|cx| connection.poll_without_shutdown(cx)).await?;
    let parts = connection.into_parts();
    // Also when it is empty it holds the whole buffer.
    let ahead = Bytes::copy_from_slice(&parts.read_buf);
    Ok(Some((parts.io.into_inner().stream, ahead)))
}

async fn serve_http2(
    (router, peer): (Router, &FarEnd),
    wire: Wire,
    stopped: &mut watch::Receiver<()>,
    times: ConnectionTimes,
    builder: &http2::Builder<TokioExecutor>,
) -> hyper::Result<()> {
    let activity = Arc::clone(&wire.activity);
    let service = service(router, peer, &activity);
    let mut connection = builder.serve_connection(TokioIo::new(wire), service);
    tokio::select! {
        ended = &mut connection => return ended,
        // Its requests end with it.
        () = stuck(&activity, times.send) => {
            tracing::debug!("a client took nothing of its answer for too long");
            return Ok(());
        }
        // Of an answer that is over for us the last part may still be on its way.
        () = idle(&activity, times.idle.max(times.send)) => tracing::debug!("a connection did not ask for anything"),
        _ = stopped.changed() => {
            Pin::new(&mut connection).graceful_shutdown();
            return connection.await;
        }
    }
    // A client that asks just now has its answer; others, and those that say nothing, have nothing to wait for.
    Pin::new(&mut connection).graceful_shutdown();
    match timeout(PING_TIMEOUT, connection).await {
        Ok(ended) => ended,
        Err(_) => Ok(()),
    }
}

/// Returns once no request has been under way for as long as `most`.
async fn idle(activity: &Activity, most: Duration) {
    let (mut seen, mut since) = (activity.idle(), Instant::now());
    while seen.is_none() || since.elapsed() < most {
        sleep(LOOK_EVERY.min(most)).await;
        let now = activity.idle();
        if now != seen || now.is_none() {
            (seen, since) = (now, Instant::now());
        }
    }
}

/// Returns once a client has taken nothing of an answer for longer than `most`.
async fn stuck(activity: &Activity, most: Duration) {
    while !activity.is_stuck(most) {
        sleep(LOOK_EVERY.min(most)).await;
    }
}

type HttpAnswer = Result<Response<AnswerBody>, Infallible>;

fn service(
    router: Router,
    peer: &FarEnd,
    activity: &Arc<Activity>,
) -> impl Service<
    Request<Incoming>,
    Response = Response<AnswerBody>,
    Error = Infallible,
    Future = BoxFuture<'static, HttpAnswer>,
> + Unpin
+ use<> {
    let (activity, peer) = (Arc::clone(activity), peer.clone());
    service_fn(move |request: Request<Incoming>| -> BoxFuture<'static, HttpAnswer> {
        let answering = activity.begin();
        let (request, unread) = unread::lend(request);
        let answer = router.clone().oneshot(request);
        let peer = peer.clone();
        Box::pin(async move {
            let mut answer = answer.await?;
            if let Some(unread) = unread {
                unread.settle(&mut answer).await;
            }
            peer.note(&answer);
            answering.offer(true);
            Ok(answer.map(|body| AnswerBody { body, answering }))
        })
    })
}

fn http1_builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(IDLE_TIMEOUT).max_buf_size(READ_AHEAD_BYTES);
    builder
}

/// `is_wide` says whether much may be under way on the connection.
fn http2_builder(is_wide: bool) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .max_frame_size(FRAME_BYTES);
    if is_wide {
        builder
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_concurrent_streams(STREAMS)
            .max_send_buf_size(SEND_BUFFER_BYTES);
    } else {
        builder
            .initial_stream_window_size(NARROW_WINDOW_BYTES)
            .initial_connection_window_size(NARROW_WINDOW_BYTES)
            .max_concurrent_streams(NARROW_STREAMS)
            .max_send_buf_size(NARROW_WINDOW_BYTES as usize);
    }
    builder
}

#[cfg(test)]
mod tests {
    use axum::routing::{self, post};
    use http_body_util::{BodyExt, Full};
    use hyper::client::conn::http2 as h2_client;
    use tokio::{
        io::AsyncWriteExt,
        net::{TcpListener, TcpStream},
        task::JoinHandle,
    };

    use super::*;

    /// A client of a connection that rests at every chance.
    struct Client {
        stream: TcpStream,
        served: JoinHandle<()>,
        stopping: watch::Sender<()>,
    }

    impl Client {
        async fn connect() -> Self {
            Self::within(ConnectionTimes {
                rest_after: Duration::ZERO,
                first: IDLE_TIMEOUT,
                idle: IDLE_TIMEOUT,
                send: IDLE_TIMEOUT,
            })
            .await
        }

        async fn within(times: ConnectionTimes) -> Self {
            let router = Router::new()
                .route("/short", routing::get(|| async { "short" }))
                .route("/long", routing::get(|| async { "x".repeat(8 << 20) }))
                .route("/length", post(|body: Bytes| async move { body.len().to_string() }))
                .route("/refuse", post(|| async { "refused" }));
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (accepted, _) = listener.accept().await.unwrap();
            let (stopping, stopped) = watch::channel(());
            let served = tokio::spawn(async move {
                serve_and_rest(
                    (router, FarEnd::default()),
                    Stream::Plain(accepted),
                    stopped,
                    times,
                    &Arc::new(Semaphore::new(1)),
                )
                .await;
            });
            Self { stream, served, stopping }
        }

        async fn send(&mut self, bytes: &[u8]) {
            self.stream.write_all(bytes).await.unwrap();
            // Lets the connection come to rest before what follows, or not: both must do.
            for _ in 0..self.stream.local_addr().unwrap().port() % 50 {
                tokio::task::yield_now().await;
            }
        }

        /// Reads one answer; returns its body.
        async fn answer(&mut self) -> String {
            self.answer_with_head().await.1
        }

        async fn answer_with_head(&mut self) -> (String, String) {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(self.stream.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap();
            assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let mut body = vec![0; length.parse().unwrap()];
            self.stream.read_exact(&mut body).await.unwrap();
            (head, String::from_utf8(body).unwrap())
        }
    }

    #[tokio::test]
    async fn a_connection_serves_on_after_each_rest_and_loses_no_byte() {
        let mut client = Client::connect().await;
        for _ in 0..20 {
            client.send(b"GET /short HTTP/1.1\r\nhost: a\r\n\r\n").await;
            assert_eq!(client.answer().await, "short");
            // In pieces, and two at once.
            for piece in ["P", "OST /length HT", "TP/1.1\r\nhost: a\r\ncontent-length: 5\r", "\n\r\nab", "cde"] {
                client.send(piece.as_bytes()).await;
            }
            assert_eq!(client.answer().await, "5");
            client.send(&b"GET /short HTTP/1.1\r\nhost: a\r\n\r\n".repeat(2)).await;
            assert_eq!([client.answer().await, client.answer().await], ["short", "short"]);
        }
        drop(client.stream);
        client.served.await.unwrap();
    }

    fn refused(more: &str) -> String {
        format!("POST /refuse HTTP/1.1\r\nhost: a\r\n{more}\r\n\r\n")
    }

    #[tokio::test]
    async fn a_connection_serves_on_when_a_body_is_refused_before_it_comes() {
        let mut client = Client::connect().await;
        for (more, pieces) in [
            ("content-length: 5", ["ab", "cde"]),
            ("content-length: 1000000", [&*"x".repeat(500_000), &*"y".repeat(500_000)]),
            ("transfer-encoding: chunked", ["5\r\nabcde\r\n", "0\r\n\r\n"]),
        ] {
            client.send(refused(more).as_bytes()).await;
            // The handler has answered when the rest comes.
            tokio::time::sleep(Duration::from_millis(20)).await;
            for piece in pieces {
                client.send(piece.as_bytes()).await;
            }
            let (head, body) = client.answer_with_head().await;
            assert_eq!((head.contains("connection: close"), &*body), (false, "refused"), "{more}");
            client.send(b"GET /short HTTP/1.1\r\nhost: a\r\n\r\n").await;
            assert_eq!(client.answer().await, "short", "{more}");
        }
    }

    #[tokio::test]
    async fn a_refusal_of_a_body_that_is_large_or_does_not_come_says_that_the_connection_ends() {
        for (more, piece) in [
            ("content-length: 1000000000", ""),
            ("content-length: 5", "ab"),
            ("content-length: 5\r\nexpect: 100-continue", ""),
            ("transfer-encoding: chunked", &*format!("200000\r\n{}", "x".repeat(0x20_0000))),
        ] {
            let mut client = Client::connect().await;
            client.send((refused(more) + piece).as_bytes()).await;
            let (head, body) = client.answer_with_head().await;
            assert_eq!((head.contains("connection: close"), &*body), (true, "refused"), "{more}");
        }
    }

    #[tokio::test]
    async fn an_answer_that_the_client_reads_late_arrives_whole() {
        let mut client = Client::connect().await;
        client.send(b"GET /long HTTP/1.1\r\nhost: a\r\n\r\n").await;
        for _ in 0..2_000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(client.answer().await.len(), 8 << 20);
    }

    const SHORT: Duration = Duration::from_secs(2);

    #[tokio::test]
    async fn a_client_that_says_nothing_at_first_loses_its_connection_soon() {
        let mut times =
            ConnectionTimes { rest_after: Duration::ZERO, first: SHORT, idle: IDLE_TIMEOUT, send: IDLE_TIMEOUT };
        let client = Client::within(times).await;
        client.served.await.unwrap();
        // Later it may be silent for longer.
        (times.first, times.idle) = (IDLE_TIMEOUT, SHORT);
        let mut client = Client::within(times).await;
        client.send(b"GET /short HTTP/1.1\r\nhost: a\r\n\r\n").await;
        assert_eq!(client.answer().await, "short");
        client.served.await.unwrap();
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_of_its_answer_loses_its_connection() {
        let mut client = Client::within(ConnectionTimes {
            rest_after: Duration::ZERO,
            first: IDLE_TIMEOUT,
            idle: IDLE_TIMEOUT,
            send: SHORT,
        })
        .await;
        // More than the buffers of both sockets take.
        client.send(&b"GET /long HTTP/1.1\r\nhost: a\r\n\r\n".repeat(4)).await;
        client.served.await.unwrap();
    }

    /// Begins to speak HTTP/2 with a connection; its windows are `window` bytes.
    async fn http2(
        client: Client,
        window: u32,
    ) -> (h2_client::SendRequest<Full<Bytes>>, JoinHandle<()>, JoinHandle<()>) {
        let mut builder = h2_client::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(window).initial_connection_window_size(window.max(65_535));
        let (sender, connection) = builder.handshake(TokioIo::new(client.stream)).await.unwrap();
        let running = tokio::spawn(async { drop(connection.await) });
        std::mem::forget(client.stopping);
        (sender, client.served, running)
    }

    fn get(path: &str) -> Request<Full<Bytes>> {
        Request::get(format!("http://localhost{path}")).body(Full::default()).unwrap()
    }

    #[tokio::test]
    async fn a_connection_of_http2_without_requests_ends() {
        let client = Client::within(ConnectionTimes {
            rest_after: Duration::ZERO,
            first: IDLE_TIMEOUT,
            idle: SHORT,
            send: SHORT,
        })
        .await;
        let (mut sender, served, running) = http2(client, 1 << 20).await;
        assert_eq!(sender.send_request(get("/short")).await.unwrap().status(), 200);
        served.await.unwrap();
        running.await.unwrap();
    }

    #[tokio::test]
    async fn an_answer_over_http2_that_nobody_takes_ends_its_connection() {
        let client = Client::within(ConnectionTimes {
            rest_after: Duration::ZERO,
            first: IDLE_TIMEOUT,
            idle: IDLE_TIMEOUT,
            send: SHORT,
        })
        .await;
        let (mut sender, served, _running) = http2(client, 0).await;
        let answer = sender.send_request(get("/long")).await.unwrap();
        // Answers to pings go on meanwhile.
        served.await.unwrap();
        assert!(answer.into_body().collect().await.is_err());
    }

    #[tokio::test]
    async fn a_connection_at_rest_ends_when_the_server_stops() {
        let mut client = Client::connect().await;
        client.send(b"GET /short HTTP/1.1\r\nhost: a\r\n\r\n").await;
        assert_eq!(client.answer().await, "short");
        drop(client.stopping);
        client.served.await.unwrap();
        assert_eq!(client.stream.read(&mut [0]).await.unwrap(), 0);
    }
}
