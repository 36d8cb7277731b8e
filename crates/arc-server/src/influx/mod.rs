//! The doors that clients of InfluxDB come through, beside those for writes that are everybody's.
//!
//! Of InfluxDB 1.x: `/ping`, `/query` for databases and their measurements, and `/debug/vars`. Of InfluxDB 2: organizations, buckets
//! and deletes. Of InfluxDB 3: SQL, writes, databases and tables, with its own names and answers.
//! Never speaks InfluxQL or Flux.

pub(crate) mod buckets;
pub(crate) mod configure;
mod influxql;
mod lines;
pub(crate) mod precision;
mod predicate;
mod sql;
mod v1;
mod vars;

pub(crate) use lines::write as write_lp;
pub(crate) use sql::query as query_sql;
pub(crate) use v1::{ping, query};
pub(crate) use vars::vars;
