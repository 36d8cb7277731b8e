//! What the benches and the load generator share: seeded data and the generator's parts.
//!
//! Owns the shapes of the data that Arc is measured with. Nothing in a library depends on this
//! package, so that other engines compared here never reach one.

pub mod allocations;
pub mod corpus;
#[cfg(feature = "engine")]
pub mod cpu_table;
pub mod figures;
pub mod hosts;
#[cfg(feature = "engine")]
pub mod load;
#[cfg(feature = "engine")]
pub mod logs;
pub mod random;
pub mod records;
pub mod subjects;
pub mod walk;
