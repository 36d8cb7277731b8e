//! What clients are answered while the engine is being opened, which takes long where a log is replayed, and as long as another
//! node has the store where a node stands by: 503, and that it is worth while to come back.

use std::{convert::Infallible, future::Future, sync::Arc, time::Duration};

use axum::{body::Body, response::IntoResponse};
use hyper::{
    Request, Response,
    body::Incoming,
    header::{self, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    errors::Failure,
    tls::{self, Tls},
};

/// Before that, connections wait: they are served in a moment, mostly.
const PATIENCE: Duration = Duration::from_secs(3);
/// Connections that are answered at a time; others wait.
const CONNECTIONS: usize = 64;
/// How long a client may take for its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long clients are asked to wait before they come back.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Waits for `opened`, and answers those who come meanwhile once it takes long.
pub(crate) async fn answer_until<T>(
    opened: impl Future<Output = T>,
    listener: &TcpListener,
    tls: Option<&Arc<Tls>>,
) -> T {
    tokio::select! {
        opened = opened => opened,
        never = answer(listener, tls) => match never {},
    }
}

async fn answer(listener: &TcpListener, tls: Option<&Arc<Tls>>) -> Infallible {
    sleep(PATIENCE).await;
    let mut connections = JoinSet::new();
    loop {
        if connections.len() >= CONNECTIONS {
            connections.join_next().await;
        }
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => drop(connections.spawn(refuse(tls.cloned(), stream))),
            Err(_) => sleep(RETRY_AFTER).await,
        }
    }
}

/// Answers one request.
async fn refuse(tls: Option<Arc<Tls>>, stream: TcpStream) {
    let Some(stream) = tls::accept(tls.as_ref(), stream).await else { return };
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST_TIMEOUT).keep_alive(false);
    let service = service_fn(async |_: Request<Incoming>| Ok::<_, Infallible>(refusal()));
    // A client that leaves, or takes its time, has its answer all the same.
    let _ = timeout(2 * REQUEST_TIMEOUT, http.serve_connection(TokioIo::new(stream), service)).await;
}

fn refusal() -> Response<Body> {
    let text =
        "this server has not opened its data yet: it replays its log, or stands by while another node has the store";
    let mut response = Failure::busy(text, RETRY_AFTER).into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
