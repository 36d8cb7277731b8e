//! Behaviour of the engine through its public interface.

#![allow(clippy::disallowed_methods, reason = "tests make files and measure time")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod backup;
mod column_types;
mod compaction;
mod crash;
#[cfg(any(debug_assertions, feature = "crash-points"))]
mod deaths;
mod deletes;
mod directory;
mod drops;
mod durability;
mod finer_times;
mod history;
mod hourly;
mod idempotency;
mod images;
mod inserts;
mod large_batches;
mod memory;
mod model;
mod narrow;
mod object_store;
mod packs;
mod plain_files;
#[cfg(any(debug_assertions, feature = "crash-points"))]
mod points;
mod repair;
mod retention;
mod retries;
#[cfg(any(debug_assertions, feature = "crash-points"))]
mod retry_points;
mod rot;
mod sites;
mod support;
mod time_unit;
mod widening;
mod writes;
