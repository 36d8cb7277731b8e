//! The doors that clients of InfluxDB come through, beside those for writes that are everybody's.
//!
//! Of InfluxDB 1.x: `/ping`, and `/query` for databases. Of InfluxDB 3: SQL and writes, with its own names and answers.
//! Never speaks InfluxQL or Flux.

mod lines;
pub(crate) mod precision;
mod sql;
mod v1;

pub(crate) use lines::write as write_lp;
pub(crate) use sql::query as query_sql;
pub(crate) use v1::{ping, query};
