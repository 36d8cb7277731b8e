//! The service as its clients see it: one binary, for linking it takes longer than running it.

mod admin;
mod bad_bodies;
mod bad_lines;
mod bad_payloads;
mod bad_sql;
mod config;
mod conformance;
mod influx;
mod process;
mod query;
mod socket;
mod support;
mod write;
