//! Arc as an ADBC driver: the engine in the caller's process, for every language that has a driver manager
//! (docs/adbc.md).
//!
//! Owns how ADBC's objects, options and errors stand for those of the engine. Never has storage or query logic, and
//! never panics across C: all work is done on threads of its own, where a panic becomes an error.

mod connection;
mod database;
mod errors;
mod export;
mod forks;
mod info;
mod ingest;
mod objects;
mod open;
mod options;
mod place;
mod rows;
mod runtime;
mod statement;

pub use connection::ArcConnection;
pub use database::{ArcDatabase, ArcDriver};
pub use forks::check_process;
pub use open::{Mode, OpenEngine};
pub use runtime::look_for_interrupts;
pub use statement::ArcStatement;
