//! Arc where points are made: the program `arc-edge` takes line protocol, keeps it in a data directory, and pushes it to a
//! server whenever there is a line to it. It has neither SQL nor an object store, and is small.
//!
//! The library is also the client that every command of Arc is: [`ApiClient`] asks a server, [`PushServer`] hands rows to
//! one. `arc-server` has it from here.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make files and measure time"))]

#[cfg(feature = "agent")]
mod agent;
mod client;
mod credentials;
mod push_server;

use std::fmt::Write as _;

#[cfg(feature = "agent")]
pub use agent::run;
pub use client::{ApiAnswer, ApiClient, connector_over, provider};
pub use credentials::{Credentials, arguments};
pub use push_server::PushServer;

/// Returns the error's text followed by the texts of its causes.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        // Writing to a string cannot fail.
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}
