//! The one error type of the crate, and the small set of kinds that tells a caller what to do.

use std::{io, path::PathBuf, time::Duration};

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a caller can do about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request can never succeed as it is; change it.
    InvalidInput,
    /// The database, table or column does not exist.
    NotFound,
    /// The request contradicts the type or role that a column has.
    SchemaConflict,
    /// The engine is overloaded; the same request may succeed later.
    Busy,
    /// The query ran longer than it may.
    Timeout,
    /// The disk is full; the same request may succeed once there is room.
    StorageFull,
    /// The operating system refused; see the source.
    Io,
    /// Bytes on disk are not what was written there.
    Corrupt,
    /// The engine is closed, or closed to writes after a failed sync: nothing of the request was
    /// done.
    Closed,
    /// The request's own sync failed: whether it was done is known when the engine is opened again.
    Unknown,
    /// A bug of this crate or of a library under it.
    Internal,
}

/// Why a call failed: what, where, and what was expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A database, table or column name that cannot be used.
    #[error("{what} name {name:?} is not valid: {reason}")]
    InvalidName {
        /// `database`, `table` or `column`.
        what: &'static str,
        /// The name as received, cut to a readable length.
        name: String,
        /// What was expected.
        reason: &'static str,
    },
    /// A request body that cannot be read as a whole.
    #[error("invalid {format} payload: {reason}")]
    InvalidPayload {
        /// `line protocol`, `MessagePack`, `Arrow`.
        format: &'static str,
        /// What was found, where, and what was expected.
        reason: String,
    },
    /// An option with a value out of range.
    #[error("option {option} is not valid: {reason}")]
    InvalidOption {
        /// The option's name.
        option: &'static str,
        /// What was expected.
        reason: String,
    },
    /// A SQL statement that does not parse, plan or run, or is not allowed.
    #[error("{reason}")]
    Sql {
        /// What is wrong with the statement.
        reason: String,
    },
    /// A condition that a delete cannot be given.
    #[error("cannot delete by this condition: {reason}")]
    Predicate {
        /// What is wrong with it.
        reason: String,
    },
    /// A query that ran longer than `query_timeout`.
    #[error("query timed out after {} s", after.as_secs_f64())]
    Timeout {
        /// The longest time a query may run.
        after: Duration,
    },
    /// No such database.
    #[error("database {database:?} does not exist")]
    DatabaseNotFound {
        /// The name asked for.
        database: String,
    },
    /// No such table.
    #[error("table {table:?} does not exist in database {database:?}")]
    TableNotFound {
        /// The database searched.
        database: String,
        /// The name asked for.
        table: String,
    },
    /// The database is there already.
    #[error("database {database:?} exists already")]
    DatabaseExists {
        /// The name asked for.
        database: String,
    },
    /// The table is there already.
    #[error("table {table:?} exists already in database {database:?}")]
    TableExists {
        /// The database.
        database: String,
        /// The name asked for.
        table: String,
    },
    /// A moment whose state cannot be asked for.
    #[error("{reason}")]
    OutsideHistory {
        /// What was asked for, and what can be.
        reason: String,
    },
    /// No such snapshot.
    #[error("snapshot {snapshot:?} does not exist")]
    SnapshotNotFound {
        /// The name asked for.
        snapshot: String,
    },
    /// The snapshot is there already.
    #[error("snapshot {snapshot:?} exists already")]
    SnapshotExists {
        /// The name asked for.
        snapshot: String,
    },
    /// A whole write contradicts the table's schema.
    #[error("field type conflict: column {column:?} of table {table:?} is {existing}, the write has {got}")]
    SchemaConflict {
        /// The table written to.
        table: String,
        /// The column.
        column: String,
        /// What the column is.
        existing: String,
        /// What was sent; after it, if there is one, the setting with which it would be no
        /// conflict.
        got: String,
    },
    /// A write to a table beyond its [`AccessScope`](crate::AccessScope).
    #[error("table {table:?} of database {database:?} is beyond what this write may touch; nothing was stored")]
    OutOfScope {
        /// The database written to.
        database: String,
        /// The first table that is beyond it.
        table: String,
    },
    /// A write that would make a database, of which its [`AccessScope`](crate::AccessScope) has
    /// some tables only.
    #[error("there is no database {database:?}, and who may write to some of its tables only does not make it")]
    DatabaseOutOfScope {
        /// The database written to.
        database: String,
    },
    /// A write has the idempotency key of an earlier, different one.
    #[error("idempotency key {key:?} was used in database {database:?} for another write: {reason}")]
    IdempotencyKeyReused {
        /// The database written to.
        database: String,
        /// The key.
        key: String,
        /// What is different.
        reason: String,
    },
    /// The engine cannot take the request now.
    #[error("busy: {reason}")]
    Busy {
        /// Which limit was hit.
        reason: &'static str,
        /// When a retry is worth while.
        retry_after: Duration,
    },
    /// There are as many databases or tables as there may be.
    #[error("there are {limit} {what} already, and no more are made ({option})")]
    LimitReached {
        /// `databases` or `tables`.
        what: &'static str,
        /// How many there may be.
        limit: usize,
        /// The option that says so.
        option: &'static str,
    },
    /// A file operation failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The verb: `open`, `write`, `sync`, `rename`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// A change that was asked of an engine which only reads.
    #[error("this engine only reads what another process writes: send changes to the one that writes")]
    ReadOnly,
    /// A server that a program asked has refused.
    #[error("{server}: {reason}")]
    RefusedByServer {
        /// Its address.
        server: String,
        /// What it answered, or why it was not asked.
        reason: String,
    },
    /// A query of an engine that only reads took longer than its files were kept for it.
    #[error("the process that writes has removed data files that this query was reading; ask again")]
    Expired,
    /// An object store that does not do what an engine needs of it.
    #[error("the object store breaks a promise without which points would be lost ({promise}): {found}")]
    BadStore {
        /// What it should do.
        promise: &'static str,
        /// What it did.
        found: String,
    },
    /// The process that writes to the store, on another machine, cannot be asked for what is in no
    /// data file yet; what is known of it may be old, and is no answer.
    #[error("the owner of this store cannot be asked what it has acknowledged: {reason}")]
    OwnerUnreachable {
        /// Who was asked, and what came of it.
        reason: String,
    },
    /// Another process has the data directory open.
    #[error("data directory {} is in use by another process", path.display())]
    InUse {
        /// The data directory.
        path: PathBuf,
    },
    /// A folder with other things in it.
    #[error("{} is not a data directory: {reason}", path.display())]
    NotADataDirectory {
        /// The folder.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// A data directory and an object store, or the lack of one, that do not belong together.
    #[error("data directory {} cannot be used like this: {reason}", path.display())]
    OtherStore {
        /// The data directory.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// A folder that a backup or a restored copy cannot be written to.
    #[error("cannot write to {}: {reason}", path.display())]
    BadTarget {
        /// The folder.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// A data directory of a newer version.
    #[error("data directory {} has format version {found}; this build reads up to {supported}", path.display())]
    NewerFormat {
        /// The data directory.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The newest version this build reads.
        supported: u32,
    },
    /// Bytes on disk that fail their check.
    #[error("{} is damaged at byte {offset}: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where in the file.
        offset: u64,
        /// What was found and what was expected.
        reason: String,
    },
    /// The engine is closed, or closed to writes.
    #[error("the engine is closed to writes: {reason}")]
    Closed {
        /// Why.
        reason: String,
    },
    /// The log failed while the request was on its way into it: it may be there after a restart, or
    /// not.
    #[error("the log failed, and whether this request survives is known when the engine is opened again: {reason}")]
    OutcomeUnknown {
        /// What failed.
        reason: String,
    },
    /// A request of durability [`Remote`](crate::Durability::Remote) that is in the log of this machine, and not
    /// known to be in the object store.
    #[error(
        "it is stored on the disk of this machine, and whether it is in the object store, too, is not known: {reason}"
    )]
    NotInStore {
        /// Why the store has not answered, or what it has answered.
        reason: String,
    },
    /// Arrow refused; a bug of this crate, for input is checked before.
    #[error("arrow failed")]
    Arrow(#[from] arrow::error::ArrowError),
    /// Parquet refused; a bug of this crate or a damaged file.
    #[error("parquet failed on {}", path.display())]
    Parquet {
        /// The data file.
        path: PathBuf,
        /// What the library said.
        #[source]
        source: parquet::errors::ParquetError,
    },
    /// A file that cannot be imported, or not any further.
    #[error("cannot import {file}: {reason}")]
    Import {
        /// The file.
        file: String,
        /// What was found and what was expected.
        reason: String,
    },
    /// A piece of a file that its target does not take; what is before it is stored.
    #[error("the import of {file} stopped at row {row}")]
    ImportStopped {
        /// The file.
        file: String,
        /// The first line or row of the piece, counted from 1.
        row: u64,
        /// What the target said.
        #[source]
        source: Box<Error>,
    },
    /// An `INSERT` that failed when a part of its rows was stored.
    #[error("the INSERT stopped; {rows} rows are stored")]
    InsertStopped {
        /// Rows that are stored, as durable as was asked.
        rows: u64,
        /// Why it stopped.
        #[source]
        source: Box<Error>,
    },
    /// A row that a Parquet writer does not take.
    #[error("row {row}, column {column:?}: {reason}")]
    Row {
        /// The row, counted from 1 over all rows that the writer has taken.
        row: u64,
        /// The column.
        column: String,
        /// What was found and what was expected.
        reason: String,
    },
    /// A Parquet writer that takes no more rows.
    #[error("the Parquet writer is closed: {reason}")]
    WriterClosed {
        /// Why.
        reason: String,
    },
    /// Two data directories of which one hands its rows to the other, and that do not agree on which
    /// these were.
    #[error("{reason}")]
    Diverged {
        /// What either of them has.
        reason: String,
    },
    /// A broken promise inside the crate.
    #[error("internal error: {reason}")]
    Internal {
        /// What does not add up.
        reason: String,
    },
}

impl Error {
    /// Returns what a caller can do about this error.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// use arc_core::{Engine, ErrorKind};
    ///
    /// let engine = Engine::open(&path)?;
    /// let error = engine.tables("plant").unwrap_err();
    /// match error.kind() {
    ///     ErrorKind::NotFound => println!("{error}"),
    ///     ErrorKind::Busy => println!("come back later: {error}"),
    ///     _ => return Err(error.into()),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InvalidName { .. }
            | Self::InvalidPayload { .. }
            | Self::RefusedByServer { .. }
            | Self::InvalidOption { .. }
            | Self::Sql { .. }
            | Self::Predicate { .. }
            | Self::DatabaseExists { .. }
            | Self::TableExists { .. }
            | Self::OutsideHistory { .. }
            | Self::SnapshotExists { .. }
            | Self::IdempotencyKeyReused { .. }
            | Self::OutOfScope { .. }
            | Self::DatabaseOutOfScope { .. }
            | Self::NotADataDirectory { .. }
            | Self::OtherStore { .. }
            | Self::BadStore { .. }
            | Self::ReadOnly
            | Self::BadTarget { .. }
            | Self::Import { .. }
            | Self::LimitReached { .. }
            | Self::Diverged { .. }
            | Self::Row { .. }
            | Self::NewerFormat { .. } => ErrorKind::InvalidInput,
            Self::DatabaseNotFound { .. } | Self::TableNotFound { .. } | Self::SnapshotNotFound { .. } => {
                ErrorKind::NotFound
            }
            Self::SchemaConflict { .. } => ErrorKind::SchemaConflict,
            Self::Busy { .. } | Self::InUse { .. } | Self::Expired | Self::OwnerUnreachable { .. } => ErrorKind::Busy,
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::ImportStopped { source, .. } | Self::InsertStopped { source, .. } => source.kind(),
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::StorageFull,
                _ => ErrorKind::Io,
            },
            Self::Corrupt { .. } | Self::Parquet { .. } => ErrorKind::Corrupt,
            Self::Closed { .. } | Self::WriterClosed { .. } => ErrorKind::Closed,
            Self::OutcomeUnknown { .. } | Self::NotInStore { .. } => ErrorKind::Unknown,
            Self::Arrow(_) | Self::Internal { .. } => ErrorKind::Internal,
        }
    }

    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { action, path: path.into(), source }
    }

    pub(crate) fn corrupt(path: impl Into<PathBuf>, offset: u64, reason: impl Into<String>) -> Self {
        Self::Corrupt { path: path.into(), offset, reason: reason.into() }
    }

    /// The commit thread has gone without an answer.
    pub(crate) fn unanswered() -> Self {
        Self::OutcomeUnknown { reason: "the engine stopped before it answered".into() }
    }

    pub(crate) fn internal(reason: impl Into<String>) -> Self {
        Self::Internal { reason: reason.into() }
    }
}
