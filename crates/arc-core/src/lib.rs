//! Arc: an embeddable time-series store.

pub mod catalog;
pub mod clock;
pub mod datafile;
mod engine;
mod error;
mod options;
mod sequence;
pub mod vfs;
mod view;
#[allow(dead_code, reason = "wired by the engine")]
pub(crate) mod wal;
mod write;

pub use engine::{DatabaseInfo, Engine, EngineBuilder, EngineStats, FlushReport, TableInfo};
pub use error::{Error, ErrorKind, Result};
pub use options::{Durability, Options, Precision, WriteOptions};
pub use sequence::SequenceNumber;
pub use view::{BufferPart, TableView};
pub use write::{MAX_REJECTED, PendingWrite, Rejected, Written};
