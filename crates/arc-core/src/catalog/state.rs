//! What the manifest says now: databases, tables, schemas, live data files.
//!
//! Owns the state in memory, the rules that every edit has to obey, and the payload of a snapshot
//! (docs/format.md, "Manifest"). Never touches a file.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, VecDeque},
    hash::{Hash, Hasher},
    sync::Arc,
};

use hashbrown::HashSet;
use serde::{Deserialize, Serialize};

use super::{
    ColumnTypesEdit, DropEdit, DurabilityEdit, IdempotencyRecord, ManifestEdit, NamedSnapshot, PushStream,
    RetentionEdit, TableEdit, TableSchema, definition, object::FormatVersion, shared,
};
use crate::{
    ColumnTypes, Durability, SequenceNumber, Tombstone,
    model::{Column, CutName, DataFile},
};

/// What a table takes in memory that has no columns, no rows and no files.
const TABLE_BYTES: usize = 1 << 10;

/// Everything that the manifest says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ManifestState {
    /// The data directory whose log goes with this, of a manifest in an object store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) directory: Option<String>,
    /// Whether groups of the log may be in the object store.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) remote_log: bool,
    /// Every change up to this one is in data files and schemas here.
    pub(crate) flushed: SequenceNumber,
    /// When the newest commit was made that says it, in nanoseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time_ns: Option<i64>,
    /// Databases by name.
    pub(crate) databases: BTreeMap<String, DatabaseState>,
    /// States that are kept, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) snapshots: BTreeMap<String, NamedSnapshot>,
    /// The name of the data directory, for others that adopt its rows; `None` of one that an earlier
    /// build has made, and that has handed over none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<String>,
    /// How far rows were handed to other directories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) pushes: Vec<PushStream>,
    /// Up to which cut rows of other directories are here, by the names of these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) adopted: BTreeMap<String, CutName>,
}

/// One database.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DatabaseState {
    /// When it was created, in nanoseconds since the epoch.
    pub(crate) created_ns: i64,
    /// How long rows of its tables are kept, in nanoseconds, where a table does not say it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retention_ns: Option<u64>,
    /// What acknowledged points survive, where their write does not say it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) durability: Option<Durability>,
    /// How strict its tables are about types.
    #[serde(default, skip_serializing_if = "ColumnTypes::is_empty")]
    pub(crate) column_types: ColumnTypes,
    /// Tables by name.
    pub(crate) tables: BTreeMap<String, TableState>,
    /// Receipts kept for idempotency keys, in order of their sequence numbers.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub(crate) receipts: VecDeque<IdempotencyRecord>,
}

/// One table.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "TableRecord")]
pub(crate) struct TableState {
    /// Its columns.
    #[serde(with = "definition::required")]
    pub(crate) schema: Arc<TableSchema>,
    /// How long its rows are kept, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retention_ns: Option<u64>,
    /// How strict it is about types.
    #[serde(skip_serializing_if = "ColumnTypes::is_empty")]
    pub(crate) column_types: ColumnTypes,
    /// Whether a column had another type in an earlier schema, which data files may still have.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) widened: bool,
    /// Its live data files, in the order in which they were added.
    #[serde(serialize_with = "shared::serialize")]
    pub(crate) files: Vec<Arc<DataFile>>,
    /// Deletes that are not yet carried out in all files, in order.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "shared::serialize")]
    pub(crate) tombstones: Vec<Arc<Tombstone>>,
    /// The same files, so that a commit looks at no more files than it names.
    #[serde(skip)]
    by_path: HashSet<ByPath, foldhash::fast::RandomState>,
}

impl PartialEq for TableState {
    fn eq(&self, other: &Self) -> bool {
        self.schema == other.schema
            && self.retention_ns == other.retention_ns
            && self.column_types == other.column_types
            && self.widened == other.widened
            && self.files == other.files
            && self.tombstones == other.tombstones
    }
}

impl ManifestState {
    /// Returns the table, if it is there.
    pub(crate) fn table(&self, database: &str, table: &str) -> Option<&TableState> {
        self.databases.get(database)?.tables.get(table)
    }

    /// Returns all live data files of all tables.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<DataFile>> {
        self.databases.values().flat_map(|database| database.tables.values()).flat_map(|table| &table.files)
    }

    /// Returns about how many bytes the tables take in memory that are made of it: their columns, and what
    /// is known of their files.
    pub(crate) fn memory_bytes(&self) -> usize {
        let tables = self.databases.values().flat_map(|database| database.tables.values());
        tables
            .map(|table| {
                let columns = table.schema.columns.iter().map(|column| size_of::<Column>() + column.name.len());
                let files = table.files.iter().map(|file| file.memory_bytes());
                TABLE_BYTES + columns.sum::<usize>() + files.sum::<usize>()
            })
            .sum()
    }

    /// Returns the data files that an edit takes out, which [`Self::check`] let pass.
    pub(super) fn removed_by(&self, edit: &ManifestEdit) -> Vec<Arc<DataFile>> {
        let mut removed = Vec::new();
        for DropEdit { database, table } in &edit.dropped {
            let Some(database) = self.databases.get(database) else { continue };
            let tables = database.tables.iter().filter(|(name, _)| table.as_ref().is_none_or(|table| table == *name));
            removed.extend(tables.flat_map(|(_, table)| table.files.iter().cloned()));
        }
        for edit in &edit.tables {
            let Some(table) = self.table(&edit.database, &edit.table) else { continue };
            let found = |path: &String| table.by_path.get(path.as_str()).map(|file| Arc::clone(&file.0));
            removed.extend(edit.files_removed.iter().filter_map(found));
        }
        removed
    }

    /// Returns the paths of the files in which they are: their own, or those of their packs.
    pub(crate) fn stored_paths(&self) -> HashSet<&str> {
        self.files().map(|file| file.stored_path()).collect()
    }

    /// Takes out the data files that `drop` says and returns them.
    pub(crate) fn drop_files(&mut self, drop: impl Fn(&DataFile) -> bool) -> Vec<Arc<DataFile>> {
        let mut dropped = Vec::new();
        for table in self.databases.values_mut().flat_map(|database| database.tables.values_mut()) {
            dropped.extend(table.files.extract_if(.., |file| drop(file)));
            table.by_path = table.files.iter().cloned().map(ByPath).collect();
        }
        dropped
    }

    /// Returns what a build has to know to read it.
    pub(super) fn version(&self) -> FormatVersion {
        let is_plain = |database: &DatabaseState| {
            let is_plain = |table: &TableState| table.column_types.is_empty() && !table.widened;
            database.column_types.is_empty() && database.tables.values().all(is_plain)
        };
        let is_remote = |database: &DatabaseState| database.durability == Some(Durability::Remote);
        if self.files().any(|file| !file.time_unit.is_nanosecond()) {
            FormatVersion::TimeUnits
        } else if self.has_pushes() {
            FormatVersion::Pushes
        } else if self.remote_log || self.databases.values().any(is_remote) {
            FormatVersion::RemoteLog
        } else if !self.snapshots.is_empty() {
            FormatVersion::Snapshots
        } else if self.files().any(|file| file.packed().is_some()) {
            FormatVersion::Packs
        } else if self.databases.values().all(is_plain) {
            FormatVersion::Plain
        } else {
            FormatVersion::ColumnTypes
        }
    }

    /// Returns the same of an edit of this state.
    pub(super) fn version_of(&self, edit: &ManifestEdit) -> FormatVersion {
        let widens = |edit: &TableEdit| {
            let known = self.table(&edit.database, &edit.table).zip(edit.schema.as_ref());
            known.is_some_and(|(known, schema)| schema.has_widened(&known.schema))
        };
        // Older builds know deletes that are added only after all that were there.
        let restores = |edit: &TableEdit| !edit.tombstones_removed.is_empty() && !edit.tombstones_added.is_empty();
        let is_remote = |edit: &DurabilityEdit| edit.durability == Some(Durability::Remote);
        let mut added = edit.tables.iter().flat_map(|table| &table.files_added);
        if added.clone().any(|file| !file.time_unit.is_nanosecond()) {
            FormatVersion::TimeUnits
        } else if edit.has_pushes() {
            FormatVersion::Pushes
        } else if self.remote_log || edit.remote_log || edit.durabilities.iter().any(is_remote) {
            FormatVersion::RemoteLog
        } else if !edit.snapshots_added.is_empty() || edit.tables.iter().any(restores) {
            FormatVersion::Snapshots
        } else if added.any(|file| file.packed().is_some()) {
            FormatVersion::Packs
        } else if edit.column_types.is_empty() && !edit.tables.iter().any(widens) {
            FormatVersion::Plain
        } else {
            FormatVersion::ColumnTypes
        }
    }

    /// Says why an edit must not be committed. Costs nothing that grows with the files that are
    /// there.
    pub(crate) fn check(&self, edit: &ManifestEdit) -> Result<(), String> {
        if let Some(flushed) = edit.flushed.filter(|flushed| *flushed < self.flushed) {
            return Err(format!("flushed would go back from {} to {flushed}", self.flushed));
        }
        let dropped = self.check_dropped(edit)?;
        let mut added = HashSet::new();
        let has_database = |name: &str| self.databases.contains_key(name) && !dropped.contains(&(name, None));
        for (database, _) in &edit.databases_added {
            if has_database(database) || !added.insert(database.as_str()) {
                return Err(format!("database {database:?} is added twice"));
            }
        }
        edit.retentions.iter().try_for_each(|retention| self.check_retention(retention))?;
        edit.column_types
            .iter()
            .try_for_each(|edit| self.check_is_there("types", &edit.database, edit.table.as_deref()))?;
        if let Some(edit) = edit.durabilities.iter().find(|edit| !self.databases.contains_key(&edit.database)) {
            return Err(format!("a durability of database {:?}, which is not there", edit.database));
        }
        let mut tables = HashSet::new();
        for table in &edit.tables {
            let label = format!("table {:?} of database {:?}", table.table, table.database);
            if !has_database(&table.database) && !added.contains(table.database.as_str()) {
                return Err(format!("{label} has no such database"));
            }
            if !tables.insert((&table.database, &table.table)) {
                return Err(format!("{label} is named twice"));
            }
            let is_new = dropped.contains(&(table.database.as_str(), Some(table.table.as_str())))
                || !has_database(&table.database);
            let known = if is_new { None } else { self.table(&table.database, &table.table) };
            check_table(known, table).map_err(|e| format!("{label}: {e}"))?;
        }
        self.check_snapshots(edit)?;
        self.check_adoption(edit)?;
        self.check_receipts(edit)
    }

    fn check_snapshots(&self, edit: &ManifestEdit) -> Result<(), String> {
        if let Some(name) = edit.snapshots_dropped.iter().find(|name| !self.snapshots.contains_key(*name)) {
            return Err(format!("snapshot {name:?} is dropped and not there"));
        }
        match edit.snapshots_added.iter().find(|(name, _)| self.snapshots.contains_key(name)) {
            Some((name, _)) => Err(format!("snapshot {name:?} is added twice")),
            None => Ok(()),
        }
    }

    /// Returns what is dropped, by names.
    fn check_dropped<'e>(&self, edit: &'e ManifestEdit) -> Result<HashSet<(&'e str, Option<&'e str>)>, String> {
        let mut dropped = HashSet::new();
        for DropEdit { database, table } in &edit.dropped {
            let is_there = match table {
                None => self.databases.contains_key(database),
                Some(table) => self.table(database, table).is_some(),
            };
            if !is_there || !dropped.insert((database.as_str(), table.as_deref())) {
                return Err(format!("what is dropped is not there: {table:?} of database {database:?}"));
            }
        }
        Ok(dropped)
    }

    fn check_is_there(&self, what: &str, database: &str, table: Option<&str>) -> Result<(), String> {
        let is_there = match table {
            None => self.databases.contains_key(database),
            Some(table) => self.table(database, table).is_some(),
        };
        if is_there { Ok(()) } else { Err(format!("{what} of what is not there: {database:?} {table:?}")) }
    }

    fn check_retention(&self, edit: &RetentionEdit) -> Result<(), String> {
        self.check_is_there("a retention", &edit.database, edit.table.as_deref())?;
        if edit.retention_ns == Some(0) {
            return Err(format!("a retention of nothing at all, of {:?} {:?}", edit.database, edit.table));
        }
        Ok(())
    }

    /// Makes the changes of an edit that [`ManifestState::check`] let pass.
    pub(crate) fn apply(&mut self, edit: ManifestEdit) {
        self.flushed = edit.flushed.unwrap_or(self.flushed);
        self.time_ns = edit.time_ns.or(self.time_ns);
        self.remote_log |= edit.remote_log;
        self.snapshots.retain(|name, _| !edit.snapshots_dropped.contains(name));
        self.snapshots.extend(edit.snapshots_added);
        self.directory = edit.opened.map(|opened| opened.directory).or(self.directory.take());
        for DropEdit { database, table } in edit.dropped {
            match (table, self.databases.get_mut(&database)) {
                (Some(table), Some(database)) => drop(database.tables.remove(&table)),
                (None, _) => drop(self.databases.remove(&database)),
                (Some(_), None) => {}
            }
        }
        for (database, created_ns) in edit.databases_added {
            self.databases.insert(database, DatabaseState { created_ns, ..DatabaseState::default() });
        }
        for RetentionEdit { database, table, retention_ns } in edit.retentions {
            let Some(database) = self.databases.get_mut(&database) else { continue };
            let setting = match table {
                None => Some(&mut database.retention_ns),
                Some(table) => database.tables.get_mut(&table).map(|table| &mut table.retention_ns),
            };
            if let Some(setting) = setting {
                *setting = retention_ns;
            }
        }
        for DurabilityEdit { database, durability } in edit.durabilities {
            if let Some(database) = self.databases.get_mut(&database) {
                database.durability = durability;
            }
        }
        for ColumnTypesEdit { database, table, types } in edit.column_types {
            let Some(database) = self.databases.get_mut(&database) else { continue };
            let setting = match table {
                None => Some(&mut database.column_types),
                Some(table) => database.tables.get_mut(&table).map(|table| &mut table.column_types),
            };
            if let Some(setting) = setting {
                *setting = types;
            }
        }
        self.apply_pushes(edit.origin, edit.pushes, edit.adopted);
        self.apply_receipts(edit.receipts_added, edit.receipts_dropped);
        for edit in edit.tables {
            let Some(database) = self.databases.get_mut(&edit.database) else { continue };
            match (database.tables.get_mut(&edit.table), &edit.schema) {
                (Some(table), _) => table.apply(edit),
                (None, Some(schema)) => {
                    let mut table = TableState::new(Arc::clone(schema), Vec::new());
                    let name = edit.table.clone();
                    table.apply(edit);
                    database.tables.insert(name, table);
                }
                (None, None) => {}
            }
        }
    }

    /// Says what in a state read from disk cannot be.
    pub(super) fn check_all(&self) -> Result<(), String> {
        for (database, state) in &self.databases {
            for (table, state) in &state.tables {
                check_names(&state.schema, database, table)?;
                if state.by_path.len() != state.files.len() {
                    return Err(format!("table {table:?} of database {database:?} has a file twice"));
                }
                state.files.iter().try_for_each(|file| check_path(&file.path))?;
                if !state.tombstones.is_sorted_by(|a, b| a.seq < b.seq) {
                    return Err(format!("the deletes of table {table:?} of database {database:?} are not in order"));
                }
            }
        }
        Ok(())
    }
}

impl TableState {
    fn new(schema: Arc<TableSchema>, files: Vec<Arc<DataFile>>) -> Self {
        let by_path = files.iter().cloned().map(ByPath).collect();
        Self {
            schema,
            retention_ns: None,
            column_types: ColumnTypes::default(),
            widened: false,
            files,
            tombstones: Vec::new(),
            by_path,
        }
    }

    fn apply(&mut self, edit: TableEdit) {
        self.widened |= edit.widened;
        if let Some(schema) = edit.schema {
            self.widened |= schema.has_widened(&self.schema);
            self.schema = schema;
        }
        // By address: the files that stay are not looked into.
        let removed: HashSet<*const DataFile> = (edit.files_removed.iter())
            .filter_map(|path| self.by_path.take(path.as_str()))
            .map(|file| Arc::as_ptr(&file.0))
            .collect();
        if !removed.is_empty() {
            self.files.retain(|file| !removed.contains(&Arc::as_ptr(file)));
        }
        for file in edit.files_added {
            self.by_path.insert(ByPath(Arc::clone(&file)));
            self.files.push(file);
        }
        self.tombstones.retain(|tombstone| !edit.tombstones_removed.contains(&tombstone.seq));
        self.tombstones.extend(edit.tombstones_added.into_iter().map(Arc::new));
    }
}

fn check_table(table: Option<&TableState>, edit: &TableEdit) -> Result<(), String> {
    if let Some(schema) = &edit.schema {
        check_names(schema, &edit.database, &edit.table)?;
    }
    match (table, &edit.schema) {
        (None, None) => return Err("it is new and has no schema".into()),
        (Some(table), Some(schema)) if !schema.continues(&table.schema) => {
            return Err("its columns would not grow at the end only, or one would get a type that it cannot".into());
        }
        _ => {}
    }
    let has = |path: &str| table.is_some_and(|table| table.by_path.contains(path));
    let mut paths = HashSet::new();
    for path in &edit.files_removed {
        if !has(path) || !paths.insert(path.as_str()) {
            return Err(format!("file {path:?} is removed and not there"));
        }
    }
    for file in &edit.files_added {
        check_path(&file.path)?;
        if has(&file.path) || !paths.insert(file.path.as_str()) {
            return Err(format!("file {:?} is added twice", file.path));
        }
    }
    check_tombstones(table, edit)
}

fn check_tombstones(table: Option<&TableState>, edit: &TableEdit) -> Result<(), String> {
    let known = table.map_or(&[][..], |table| &table.tombstones);
    if let Some(seq) = edit.tombstones_removed.iter().find(|seq| !known.iter().any(|known| known.seq == **seq)) {
        return Err(format!("the delete {seq} is forgotten and not there"));
    }
    let stay = known.iter().map(|known| known.seq).filter(|seq| !edit.tombstones_removed.contains(seq));
    let seqs = stay.chain(edit.tombstones_added.iter().map(|added| added.seq));
    if !seqs.is_sorted_by(|a, b| a < b) {
        return Err("its deletes would not be in order".into());
    }
    Ok(())
}

fn check_names(schema: &TableSchema, database: &str, table: &str) -> Result<(), String> {
    if *schema.database != *database || *schema.table != *table {
        return Err(format!("a schema of table {:?} of database {:?}", schema.table, schema.database));
    }
    Ok(())
}

/// A path from the manifest is opened and removed as it is: it must not lead out of the data
/// directory.
fn check_path(path: &str) -> Result<(), String> {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0', ':']);
    if path.split('/').all(is_plain) { Ok(()) } else { Err(format!("{path:?} is no path below the data directory")) }
}

/// A data file, found by its path.
#[derive(Debug, Clone)]
struct ByPath(Arc<DataFile>);

impl Borrow<str> for ByPath {
    fn borrow(&self) -> &str {
        &self.0.path
    }
}

impl Hash for ByPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.path.hash(state);
    }
}

impl PartialEq for ByPath {
    fn eq(&self, other: &Self) -> bool {
        self.0.path == other.0.path
    }
}

impl Eq for ByPath {}

#[derive(Deserialize)]
struct TableRecord {
    #[serde(with = "definition::required")]
    schema: Arc<TableSchema>,
    #[serde(default)]
    retention_ns: Option<u64>,
    #[serde(default)]
    column_types: ColumnTypes,
    #[serde(default)]
    widened: bool,
    files: Vec<DataFile>,
    #[serde(default)]
    tombstones: Vec<Tombstone>,
}

impl From<TableRecord> for TableState {
    fn from(record: TableRecord) -> Self {
        let table = Self::new(record.schema, record.files.into_iter().map(Arc::new).collect());
        let tombstones = record.tombstones.into_iter().map(Arc::new).collect();
        let TableRecord { retention_ns, column_types, widened, .. } = record;
        Self { retention_ns, column_types, widened, tombstones, ..table }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_false(value: &bool) -> bool {
    !value
}
