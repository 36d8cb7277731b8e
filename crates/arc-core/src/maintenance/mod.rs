//! Looking after data directories: verification, repair, backups, branches. Stands above the engine, and does
//! by itself only what the caller asks for.

pub(crate) mod backup;
pub(crate) mod branch;
#[cfg(test)]
mod copied_store;
mod online;
mod record;
pub(crate) mod repair;
pub(crate) mod verify;
