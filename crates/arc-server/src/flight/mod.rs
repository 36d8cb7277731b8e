//! Arrow Flight SQL: the same statements, writes and limits as over HTTP, in Arrow's own protocol.
//!
//! Decodes requests, calls the engine or what HTTP calls, and encodes batches. Has no rules of its own about what a
//! statement or a write may do. `service` is the list of calls; what they are about is in one file each.

mod actions;
mod changes;
mod decode;
mod encode;
mod info;
mod ingest;
mod known;
mod messages;
mod metadata;
mod parts;
mod put;
mod query;
mod service;
mod statements;
mod status;
mod target;

use std::sync::Arc;

use arrow_flight::flight_service_server::FlightServiceServer;
use axum::Router;

use crate::app::App;

/// Where the service is found, whatever else the address serves.
const PATH: &str = "/arrow.flight.protocol.FlightService/{*method}";

/// Returns the routes of the service, to be served over HTTP/2.
pub(crate) fn routes(app: &Arc<App>) -> Router {
    let largest = app.limits.body_bytes;
    let service = FlightServiceServer::new(service::Flight::new(app)).max_decoding_message_size(largest);
    // What is sent is bounded where it is encoded.
    Router::new().route_service(PATH, service.max_encoding_message_size(usize::MAX))
}
