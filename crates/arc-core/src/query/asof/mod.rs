//! `ASOF JOIN`: to each row the newest row of another table that is not newer, or the oldest that
//! is not older.
//!
//! Owns its way through all of planning: DuckDB's spelling becomes the one that the parser knows
//! (`syntax`), the relation a plan node (`relation`, `node`), conditions sink below it (`filters`),
//! and two sorted inputs are merged (`exec`, `merge`). Sorting is left to DataFusion, within its
//! memory and with its spilling. Never reads a table.

mod exec;
mod filters;
mod merge;
mod node;
mod relation;
mod syntax;

pub(super) use self::{
    exec::AsOfPlanner,
    filters::SinkFilters,
    node::AsOf,
    relation::Relations,
    syntax::{nest, spell_out},
};
