//! Behaviour of the engine through its public interface.

mod crash;
mod directory;
mod model;
mod support;
mod writes;
