//! What the fuzz targets in `fuzz/` call. Not part of the crate for anybody else.

pub use crate::flight::read_ticket as flight_ticket;
