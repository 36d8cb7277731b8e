//! The newest rows: the last row of each series, and the last rows of a table, without reading all
//! of it.
//!
//! A rule finds statements that look at nothing else, such as
//! `row_number() OVER (PARTITION BY host ORDER BY time DESC) = 1`,
//! `last_value(x ORDER BY time) … GROUP BY host` or `ORDER BY time DESC LIMIT 10`, and replaces the
//! scan below them, and nothing else. The new scan may give more rows than the newest, but only
//! rows that are there, so that what stands above it decides as before. It reads keys and times
//! only, which of a data file are remembered, then the rows that it found. Never decides about a
//! row what the plain scan would decide otherwise: deletes, late rows and conditions are applied
//! before a row counts.

mod best;
mod cache;
mod exec;
mod filters;
mod index;
mod job;
mod of_all;
mod read;
mod rows;
mod rule;
mod search;
mod shape;
mod table;

pub(super) use self::{cache::NewestRowsCache, rule::LatestRows};
