//! Groups that come in runs: the first phase of an aggregate without a hash table.
//!
//! Rows of data files are in order of their tags and time, so that with
//! `GROUP BY host, date_trunc('minute', time)` the rows of one group stand next to each other.
//! DataFusion computes the keys of each row, hashes them and looks them up. Here the keys are
//! compared with those of the row before, as numbers: a tag by its index in the dictionary, a time
//! by the ends of its bucket. Only of the first row of a run the keys are computed, by the
//! expressions of the plan. A run becomes one row for DataFusion's second phase, which merges what
//! is of one group and stays as it is: so a run may end too early, at the end of a batch for
//! instance, but must never go on too long.
//!
//! Where runs are short, in buffers above all, the rows that are left are handed to the operator
//! that DataFusion had planned. Never decides what an aggregate is: its accumulators are
//! DataFusion's.

mod bucket;
mod exec;
mod function;
mod groups;
mod keys;
mod rule;
mod states;
#[cfg(test)]
mod tests;

#[cfg(feature = "distributed")]
pub(super) use self::exec::RunsExec;
pub(super) use self::{
    keys::Keys,
    rule::{GroupRuns, in_mode},
    states::StateKind,
};
