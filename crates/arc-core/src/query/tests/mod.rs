//! SQL over a fake engine: what a statement answers, in every state that rows can be in.

mod asof;
mod bounded;
mod buffered;
#[cfg(feature = "distributed")]
mod cluster;
mod compat;
mod counts;
mod differential;
mod doors;
mod fake;
mod forms;
mod functions;
mod grammar;
mod growth;
mod host;
mod hostile;
mod latest;
mod levels;
mod limits;
mod local;
mod merge;
mod mutated;
mod page;
mod parameters;
mod patterns;
mod pruning;
mod scan;
mod semantics;
mod shifted;
mod sized;
mod spread;
mod statements;
mod three_values;
mod times;
mod wide;
mod window_values;
