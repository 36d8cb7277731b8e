//! The service as its clients see it: one binary, for linking it takes longer than running it.

#![allow(clippy::disallowed_methods, reason = "tests make files and measure time")]

// `cfg(test)` is always on here; it tells the lints that these modules are tests and may unwrap.
#[cfg(test)]
mod admin;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod auth;
#[cfg(test)]
mod auth_flight;
#[cfg(test)]
mod backup;
#[cfg(test)]
mod bad_bodies;
#[cfg(test)]
mod bad_lines;
#[cfg(test)]
mod bad_payloads;
#[cfg(test)]
mod bad_sql;
#[cfg(test)]
mod branch;
#[cfg(test)]
mod cluster;
#[cfg(test)]
mod cluster_query;
#[cfg(test)]
mod column_types;
#[cfg(test)]
mod config;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod console;
#[cfg(test)]
mod continuous;
#[cfg(test)]
mod delete;
#[cfg(test)]
mod flight;
#[cfg(test)]
mod flight_metadata;
#[cfg(test)]
mod flight_put;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod idempotency;
#[cfg(test)]
mod import_command;
#[cfg(test)]
mod import_http;
#[cfg(test)]
mod influx;
#[cfg(test)]
mod influx_v2;
#[cfg(test)]
mod influx_v3;
#[cfg(test)]
mod older_states;
#[cfg(test)]
mod openapi;
#[cfg(test)]
mod process;
#[cfg(test)]
mod push;
#[cfg(test)]
mod query;
#[cfg(test)]
mod query_control;
#[cfg(test)]
mod query_forms;
#[cfg(test)]
mod query_limits;
#[cfg(test)]
mod readers;
#[cfg(test)]
mod retention;
#[cfg(test)]
mod retention_policies;
#[cfg(test)]
mod rights;
#[cfg(test)]
mod s3;
#[cfg(test)]
mod socket;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tail;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod token_command;
#[cfg(test)]
mod token_limits;
#[cfg(test)]
mod write;
#[cfg(test)]
mod write_arrow;
#[cfg(test)]
mod write_status;
