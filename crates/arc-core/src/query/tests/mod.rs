//! SQL over a fake engine: what a statement answers, in every state that rows can be in.

mod differential;
mod fake;
mod limits;
mod merge;
mod scan;
mod statements;
