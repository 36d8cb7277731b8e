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

use axum::{Router, extract::Request, routing::post};
use hyper::{HeaderMap, header};

use self::service::Flight;
use crate::app::App;

pub(crate) use outgoing::failed;

/// Most bytes of what a call asks for: a ticket, a descriptor, an action. A statement with its values is smaller.
const MAX_ASKED_BYTES: usize = 2 << 20;

/// Where the service is found, whatever else the address serves.
const PATH: &str = "/arrow.flight.protocol.FlightService/{method}";
/// The calls of it that carry rows.
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
    let call = post(move |request: Request| flight.clone().call(request));
    Router::new().route(GET, get).route(PUT, put).route(PATH, call)
}

/// Returns whether a request is a call of gRPC, whose failures look otherwise than those of HTTP.
pub(crate) fn is_call(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}
