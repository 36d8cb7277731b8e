//! Looking after data directories: verification, repair, backups, branches. Stands above the engine, and does
//! by itself only what the caller asks for.

pub(crate) mod backup;
pub(crate) mod branch;
mod online;
pub(crate) mod repair;
pub(crate) mod verify;
