//! Looking after data directories: verification, repair, backups. Stands above the engine, and does
//! by itself only what the caller asks for.

pub(crate) mod backup;
mod online;
pub(crate) mod repair;
pub(crate) mod verify;
