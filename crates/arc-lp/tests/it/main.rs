//! The promises of this crate: the grammar, the faces that agree, nothing allocated.
//!
//! `cfg(test)` is always true here; it tells clippy that helpers are tests too and may panic.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod chunked;
#[cfg(test)]
mod collect;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod dialects;
#[cfg(test)]
#[path = "../../examples/lp2json/format.rs"]
mod format;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod no_alloc;
#[cfg(test)]
mod pathological;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod rewritten;
#[cfg(test)]
mod written;
