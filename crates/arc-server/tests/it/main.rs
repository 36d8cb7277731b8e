//! The service as its clients see it: one binary, for linking it takes longer than running it.

// `cfg(test)` is always on here; it tells the lints that these modules are tests and may unwrap.
#[cfg(test)]
mod admin;
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
mod config;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod delete;
#[cfg(test)]
mod idempotency;
#[cfg(test)]
mod influx;
#[cfg(test)]
mod process;
#[cfg(test)]
mod query;
#[cfg(test)]
mod query_limits;
mod retention;
#[cfg(test)]
mod socket;
#[cfg(test)]
mod support;
#[cfg(test)]
mod write;
