//! Arc over HTTP and Arrow Flight: line protocol, MessagePack and record batches in, SQL out.
//!
//! This library is what the binary `arc-server` runs; it is a library so that tests can call the service without a
//! socket. It translates requests into calls of [`arc_core`] and results into bytes, and has no storage or query logic.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make files and measure time"))]

mod admin;
mod admission;
mod allocator;
mod app;
mod audit;
mod auth;
mod backup;
mod body;
mod cli;
mod cluster;
mod cluster_query;
mod column_types;
mod compaction;
mod config;
mod connection;
mod console;
mod continuous;
mod data_files;
mod decompress;
mod delete;
mod duration;
mod errors;
mod flight;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod history;
mod http;
mod import;
mod influx;
mod kept;
mod logging;
mod maintenance;
mod metrics;
mod openapi;
mod opening;
mod places;
mod push;
mod query;
mod quickstart;
mod retention;
mod sandbox;
mod server;
mod store_probe;
mod timestamp;
mod tls;
mod token;
mod workers;
mod write;
mod write_status;

pub use app::{App, StartError};
pub use auth::AuthError;
pub use cli::run;
pub use cluster::ClusterError;
pub use cluster_query::NodeList;
pub use config::{
    ClusterSettings, Config, ConfigError, Delete, Limits, Log, LogFormat, LogLevel, ObjectStore, Peer, Role, TlsFiles,
    load,
};
pub use http::router::router;
pub use server::{ServeError, Server};
pub use tls::TlsError;
