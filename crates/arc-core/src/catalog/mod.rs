//! Catalog: what tables look like, which data files are theirs, and where the data directory
//! begins.
//!
//! Owns the folder `meta/` (the manifest), the file `ARC` (the marker) and their formats
//! (docs/format.md, "Data directory", "Manifest"). Never reads or writes a data file, never takes a
//! folder's listing for the truth about data files, never decides when to flush. Called by
//! `engine`: on open, after each flush, for each change of a schema.

mod definition;
mod edit;
mod kept_files;
mod layout;
mod leases;
mod manifest;
mod object;
mod pushes;
mod receipts;
mod shared;
mod state;
mod store_marker;
mod survey;

pub use crate::model::{Column, ColumnKind, TIME_COLUMN, TableSchema, tag_type, time_type};

pub(crate) use definition::{comes_back, decode_schema, encode_schema};
pub(crate) use edit::{
    ColumnTypesEdit, DropEdit, DurabilityEdit, ManifestEdit, NamedSnapshot, RetentionEdit, TableEdit,
};
pub(crate) use kept_files::KeptFiles;
pub use layout::is_data_directory;
pub(crate) use layout::{
    check_layout, check_log_is_there, check_marker, create_folders, is_of_volume, mark_log, open_layout, sync_parents,
    write_marker,
};
pub(crate) use leases::{ReadLease, oldest_leased};
pub(crate) use manifest::{Advance, FoundHistory, HistoryWindow, Manifest, ManifestHistory, MarkAt, PastFile};
#[cfg(test)]
pub(crate) use object::NEWEST_VERSION;
pub(crate) use pushes::{Adoption, AdoptionEdit, AdoptionTable, PushStream};
pub(crate) use receipts::{Fingerprint, IdempotencyRecord, ReceiptsEdit};
pub(crate) use state::ManifestState;
pub(crate) use store_marker::check_has_no_store;
pub(crate) use survey::{ManifestSurvey, listed_files, named_state, survey};
#[cfg(feature = "object-store")]
pub(crate) use {
    edit::WriterClaim,
    layout::check_manifest_is_there,
    manifest::StreamStart,
    store_marker::{has_log, read_store_marker, write_store_marker},
};
