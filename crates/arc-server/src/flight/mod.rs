//! Arrow Flight SQL: the same statements, writes and limits as over HTTP, in Arrow's own protocol.
//!
//! Decodes requests, calls the engine or what HTTP calls, and encodes batches. Has no rules of its own about what a
//! statement or a write may do. `service` is the list of calls; what they are about is in one file each.

mod actions;
mod changes;
mod decode;
mod encode;
mod incoming;
mod info;
mod ingest;
mod known;
mod messages;
mod metadata;
mod outgoing;
mod parts;
mod put;
mod query;
mod service;
mod statements;
mod status;
mod target;

use std::sync::Arc;

use arrow_flight::flight_service_server::FlightServiceServer;
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
    routing::post,
};
use hyper::{HeaderMap, header};

use self::service::Flight;
use crate::{
    app::App,
    body::{self, Caps},
};

pub(crate) use outgoing::failed;

/// Most bytes of what a call asks for: a ticket, a descriptor, an action. A statement with its values is smaller.
const MAX_ASKED_BYTES: usize = 2 << 20;
/// What stands before a message.
const PREFIX_BYTES: usize = 5;

/// Where the service is found, whatever else the address serves.
const PATH: &str = "/arrow.flight.protocol.FlightService/{*method}";
/// The calls of it whose clients may go on sending while they are answered.
const STREAMS: [&str; 2] = ["/Handshake", "/DoExchange"];
/// The calls of it that carry rows, whose messages tonic would copy.
const GET: &str = "/arrow.flight.protocol.FlightService/DoGet";
const PUT: &str = "/arrow.flight.protocol.FlightService/DoPut";

/// Reads a ticket, and keeps nothing of it.
#[cfg(feature = "fuzzing")]
pub fn read_ticket(ticket: &[u8]) {
    let _ = messages::fetched(ticket, "d".to_owned());
}

/// Returns the routes of the service, to be served over HTTP/2.
pub(crate) fn routes(app: &Arc<App>) -> Router {
    let flight = Flight::new(app);
    let (get, put) = (flight.clone(), flight.clone());
    let get = post(move |request: Request| get.clone().get(request));
    let put = post(move |request: Request| put.clone().put(request));
    let service = FlightServiceServer::new(flight).max_decoding_message_size(MAX_ASKED_BYTES);
    // What is sent is bounded where it is encoded.
    let service = service.max_encoding_message_size(usize::MAX);
    let others = Router::new().route_service(PATH, service);
    let others = others.route_layer(middleware::from_fn_with_state(Arc::clone(app), read_first));
    Router::new().route(GET, get).route(PUT, put).merge(others)
}

/// Returns whether a request is a call of gRPC, whose failures look otherwise than those of HTTP.
pub(crate) fn is_call(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

/// Reads the message of a call for tonic, which has no account of what comes.
async fn read_first(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    // Of a stream nothing is read that is not asked for, and nothing is asked of these.
    if STREAMS.iter().any(|call| request.uri().path().ends_with(call)) {
        return next.run(request).await;
    }
    let (head, body) = request.into_parts();
    let caps = Caps { limit: MAX_ASKED_BYTES + PREFIX_BYTES, pause: app.limits.read_timeout };
    let mut reservation = app.bodies.enter();
    match body::read_within(body, &head.headers, caps, &mut reservation).await {
        Ok(body) => next.run(Request::from_parts(head, Body::from(body))).await,
        Err(failure) => failed(failure),
    }
}
