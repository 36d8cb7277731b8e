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
use axum::{Router, extract::Request, routing::post};

use self::service::Flight;
use crate::app::App;

/// Where the service is found, whatever else the address serves.
const PATH: &str = "/arrow.flight.protocol.FlightService/{*method}";
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
    let largest = app.limits.body_bytes;
    let flight = Flight::new(app);
    let (get, put) = (flight.clone(), flight.clone());
    let get = post(move |request: Request| get.clone().get(request));
    let put = post(move |request: Request| put.clone().put(request));
    let service = FlightServiceServer::new(flight).max_decoding_message_size(largest);
    // What is sent is bounded where it is encoded.
    let service = service.max_encoding_message_size(usize::MAX);
    Router::new().route(GET, get).route(PUT, put).route_service(PATH, service)
}
