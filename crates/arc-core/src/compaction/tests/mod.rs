//! Merges of real data files against a map of points.

pub(super) mod fake;
mod model;
mod refused;
