//! Adoption: data files that another directory has made become this one's, by one commit.
//!
//! Nothing of what is said of them is believed: bytes, rows, order and bounds are read from the files
//! before anything changes. Adopted rows come after all that was flushed before and before all that
//! is written later; where they may have the primary key of rows that are here, their files are late
//! (decision 040). Never opens a connection: `push` and the server do.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Engine, adoption_fit::fit, create_table, logged::schema_change, manifest::LockedManifest, shared::Shared,
    stats::Counters,
};
use crate::{
    Error, Result, SequenceNumber,
    catalog::{Adoption, AdoptionEdit, AdoptionTable, Manifest, ManifestEdit, ManifestState, TableEdit},
    crash::crash_point,
    datafile::{Examined, Inbox, OpenDataFile, Upload, check_id, copy_file, examine, prove_bytes},
    model::{CutName, DataFile, PartitionDay, TIME_COLUMN, TableSchema, data_file_path, may_become},
    registry::Table,
};

/// How long what has come of a cut stays that is not adopted, nor sent any further: a day.
const KEPT_NS: i64 = 24 * 3_600 * 1_000_000_000;
/// Most files of one cut.
const MAX_FILES: usize = 100_000;

/// What an adoption came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdoptReport {
    /// Data files that were adopted; 0 if they were before.
    pub files: u64,
    /// Their rows.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// How an adoption went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdoptOutcome {
    /// Everything up to the cut is here, durable.
    Adopted(AdoptReport),
    /// Nothing has changed: the files of these names are not here, or not as they should be, and are
    /// to be sent again.
    Missing(Vec<String>),
}

/// A file whose bytes and rows are known.
#[derive(Debug)]
struct Proven {
    path: PathBuf,
    file: DataFile,
    is_narrow: bool,
}

/// Proven files of one table.
#[derive(Debug)]
struct ProvenTable {
    schema: Arc<TableSchema>,
    files: Vec<Proven>,
}

impl Engine {
    /// Returns up to which cut the rows of another directory are here; `None` if none are.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPayload`] for a bad name; [`Error::Diverged`] for the name of this directory,
    /// which its copies and branches have, too; [`Closed`](crate::ErrorKind::Closed); of a reader
    /// [`Error::ReadOnly`].
    pub fn adopted_cut(&self, origin: &str) -> Result<Option<CutName>> {
        check_id("origin", origin)?;
        self.check_open()?;
        let shared = self.writer()?;
        shared.clear_old_uploads();
        let manifest = shared.manifest.lock_patiently()?;
        check_other(manifest.state(), origin)?;
        Ok(manifest.state().adopted.get(origin).cloned())
    }

    /// Returns how many bytes of a file are here that is to be adopted.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPayload`] for bad names; [`Io`](crate::ErrorKind::Io).
    pub fn received(&self, upload: &Upload) -> Result<u64> {
        self.check_open()?;
        self.writer()?.inbox().received(upload)
    }

    /// Takes bytes of a file that is to be adopted, which have their place at `offset`; returns how
    /// many are here then. Bytes that do not follow those that are here are not taken, which the
    /// number says. They survive nothing yet; what is lost is asked for again.
    ///
    /// # Errors
    ///
    /// As [`received`](Self::received).
    pub fn receive(&self, upload: &Upload, offset: u64, bytes: &[u8]) -> Result<u64> {
        self.check_open()?;
        self.writer()?.inbox().receive(upload, offset, bytes)
    }

    /// Makes the files that were received this directory's, all of a cut or none, and says so in the
    /// same commit: a second time nothing is done. `adoption` is what [`Engine::push`] hands to its
    /// target. `may_write` says whether the sender may write to a table, by database and name.
    ///
    /// # Errors
    ///
    /// [`Error::Diverged`] if the cut does not follow what is here; [`Error::SchemaConflict`] naming
    /// the column; [`Error::OutOfScope`]; [`Error::DatabaseOutOfScope`]; [`Error::InvalidPayload`] for what no directory makes. Then
    /// nothing has changed.
    pub fn adopt(&self, adoption: &[u8], may_write: &dyn Fn(&str, &str) -> bool) -> Result<AdoptOutcome> {
        self.check_open()?;
        let adoption = Adoption::decode(adoption)?;
        check(&adoption)?;
        let names = adoption.tables.iter().map(|table| (&*table.schema.database, &*table.schema.table));
        if let Some((database, table)) = names.into_iter().find(|(database, table)| !may_write(database, table)) {
            let (database, table) = (database.to_owned(), table.to_owned());
            return Err(match self.tables(&database) {
                Ok(_) => Error::OutOfScope { database, table },
                Err(_) => Error::DatabaseOutOfScope { database },
            });
        }
        self.writer()?.adopt(self, &adoption)
    }
}

/// Refuses what no directory asks.
fn check(adoption: &Adoption) -> Result<()> {
    check_id("origin", &adoption.origin)?;
    check_id("cut", &adoption.cut.id)?;
    let files: usize = adoption.tables.iter().map(|table| table.files.len()).sum();
    if files > MAX_FILES {
        return refused(format!("a cut has at most {MAX_FILES} files, this one {files}"));
    }
    let mut names = hashbrown::HashSet::new();
    for AdoptionTable { schema, files } in &adoption.tables {
        create_table::check(schema)?;
        if !names.insert((&schema.database, &schema.table)) || files.is_empty() {
            return refused(format!("table {:?} comes twice, or without files", schema.table));
        }
    }
    Ok(())
}

/// Refuses the rows of this directory itself, or of one that has rows of it: they would be here twice.
fn check_other(state: &ManifestState, origin: &str) -> Result<()> {
    if state.origin.as_deref() != Some(origin) {
        return Ok(());
    }
    let reason = "both directories are the same one, or one is a copy or a branch of the other: rows that both have would \
                  be there twice";
    Err(Error::Diverged { reason: reason.into() })
}

fn refused<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::InvalidPayload { format: "pushed", reason: reason.into() })
}

fn upload_of(adoption: &Adoption, file: &DataFile) -> Upload {
    let (origin, cut) = (adoption.origin.clone(), adoption.cut.id.clone());
    Upload { origin, cut, name: Upload::name_of(file), bytes: file.bytes }
}

impl Shared {
    fn inbox(&self) -> Inbox<'_> {
        Inbox { vfs: self.vfs.as_ref(), root: &self.root }
    }

    /// Removes what has come of cuts that nobody goes on with.
    fn clear_old_uploads(&self) {
        let before_ns = self.clock.now_ns().saturating_sub(KEPT_NS);
        for (origin, _) in self.inbox().origins().unwrap_or_default().into_iter().filter(|(_, last)| *last < before_ns)
        {
            self.inbox().clear(&origin);
        }
    }

    fn adopt(&self, engine: &Engine, adoption: &Adoption) -> Result<AdoptOutcome> {
        // No merge takes files as its inputs meanwhile, and adoptions come one after the other.
        let _turn = self.compactor.turn()?;
        let is_there = {
            let manifest = self.manifest.lock_patiently()?;
            check_other(manifest.state(), &adoption.origin)?;
            is_adopted(manifest.state().adopted.get(&adoption.origin), adoption)?
        };
        if is_there {
            self.inbox().clear(&adoption.origin);
            return Ok(AdoptOutcome::Adopted(AdoptReport::default()));
        }
        let missing = self.missing(adoption)?;
        if !missing.is_empty() {
            return Ok(AdoptOutcome::Missing(missing));
        }
        let mut proven = Vec::new();
        let mut damaged = Vec::new();
        for table in &adoption.tables {
            let known =
                self.schema.registry().database(&table.schema.database).and_then(|db| db.table(&table.schema.table));
            let schema = fit(known.as_ref().map(|known| known.schema()).as_deref(), &table.schema)?;
            let mut files = Vec::new();
            for file in &table.files {
                match self.prove(adoption, &schema, file)? {
                    Some(file) => files.push(file),
                    None => damaged.push(Upload::name_of(file)),
                }
            }
            proven.push(ProvenTable { schema: Arc::new(schema), files });
        }
        if !damaged.is_empty() {
            return Ok(AdoptOutcome::Missing(damaged));
        }
        crash_point("adopt::proven");
        let tables = proven.iter().map(|table| self.make_table(engine, &table.schema)).collect::<Result<Vec<_>>>()?;
        let report = self.take_in(adoption, proven, &tables)?;
        self.compactor.wake();
        Ok(AdoptOutcome::Adopted(report))
    }

    /// Returns the names of files that are not here as a whole.
    fn missing(&self, adoption: &Adoption) -> Result<Vec<String>> {
        let mut missing = Vec::new();
        for file in adoption.tables.iter().flat_map(|table| &table.files) {
            let upload = upload_of(adoption, file);
            if self.inbox().received(&upload)? != file.bytes {
                missing.push(upload.name);
            }
        }
        Ok(missing)
    }

    /// Reads a file and returns what it is; `None`, and it is gone, if its bytes are not those that
    /// were sent.
    fn prove(&self, adoption: &Adoption, schema: &TableSchema, said: &DataFile) -> Result<Option<Proven>> {
        let upload = upload_of(adoption, said);
        let path = self.inbox().path(&upload);
        match prove_bytes(self.vfs.as_ref(), &path, said) {
            Err(Error::Corrupt { .. }) => {
                self.inbox().discard(&upload)?;
                return Ok(None);
            }
            proven => proven?,
        }
        let _memory = self.memory.reserve(1 << 20);
        // Whatever a library makes of bytes from outside, it does not end a thread that has locks.
        let read = || prove_rows(self, &path, schema, said);
        let read = catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| refused("it cannot be read as Parquet"));
        let name = &upload.name;
        let (file, is_narrow) = read.map_err(|error| match error {
            Error::Io { .. } => error,
            Error::Parquet { source, .. } => not_valid(name, &source),
            error => not_valid(name, &error),
        })?;
        Ok(Some(Proven { path, file, is_narrow }))
    }

    /// Returns the table of a schema, which it has or gets.
    fn make_table(&self, engine: &Engine, schema: &TableSchema) -> Result<Arc<Table>> {
        match engine.create_table(schema) {
            Ok(()) | Err(Error::TableExists { .. }) => {}
            Err(error) => return Err(error),
        }
        let table = engine.table(&schema.database, &schema.table)?;
        let _schema_lock = self.schema.lock();
        let known = table.schema();
        let grown = fit(Some(&known), schema)?;
        // Files were looked at in this order of tags.
        if table.is_dropped() || !grown.tags().eq(schema.tags()) {
            return Err(changed_meanwhile());
        }
        if grown != *known {
            let change = schema_change(&grown, false, self.clock.now_ns())?;
            let answer = self.queue.push_change(change, None, || table.set_schema(Arc::new(grown)))?;
            crate::sync::block_on(answer).unwrap_or_else(|_| Err(Error::unanswered()))?;
        }
        Ok(table)
    }

    /// Puts files into their places and commits them.
    fn take_in(&self, adoption: &Adoption, proven: Vec<ProvenTable>, tables: &[Arc<Table>]) -> Result<AdoptReport> {
        for (table, proven) in tables.iter().zip(&proven) {
            let newest = proven.files.iter().map(|proven| proven.file.max_time).max().unwrap_or(i64::MIN);
            // Before anything more is written: it may have the primary key of a row that comes.
            table.rows()?.buffer.note_files(newest);
        }
        let mut manifest = self.manifest.lock_patiently()?;
        let Some(seq) = self.flush_to_cut(&mut manifest)? else {
            return Err(Error::internal("there is no database to adopt rows in"));
        };
        if tables.iter().any(|table| table.is_dropped()) {
            return Err(changed_meanwhile());
        }
        let folders = self.folders.publish()?;
        let mut made: Vec<Vec<Arc<DataFile>>> = Vec::new();
        let placed = proven.iter().zip(tables).try_for_each(|(proven, table)| {
            let mut files = Vec::new();
            let placed = proven.files.iter().try_for_each(|file| {
                let late = is_late(&manifest, &table.schema(), &file.file);
                files.push(Arc::new(self.place(&proven.schema, file, (seq, late))?));
                Ok(())
            });
            let placed = placed.and_then(|()| folders.sync_table(files.iter().map(|file| file.path.as_str())));
            made.push(files);
            placed
        });
        if let Err(error) = placed.and_then(|()| folders.finish()) {
            self.folders.note_unsynced(&error);
            self.leave_made(&made);
            return Err(error);
        }
        crash_point("adopt::placed");
        self.commit_adopted(&mut manifest, adoption, &proven, &made).inspect_err(|_| {
            // If the change may be durable, the next open needs the files.
            if !manifest.is_closed() {
                self.leave_made(&made);
            }
        })?;
        crash_point("adopt::committed");
        let mut report = AdoptReport::default();
        for (table, files) in tables.iter().zip(made) {
            report.files += files.len() as u64;
            report.rows += files.iter().map(|file| file.rows).sum::<u64>();
            report.bytes += files.iter().map(|file| file.bytes).sum::<u64>();
            table.stored().files.extend(files);
        }
        drop(manifest);
        Counters::add(&self.counters.adopted_rows, report.rows);
        Counters::add(&self.counters.adopted_bytes, report.bytes);
        self.inbox().clear(&adoption.origin);
        Ok(report)
    }

    fn leave_made(&self, made: &[Vec<Arc<DataFile>>]) {
        self.leftovers.leave_files(made.iter().flatten().map(Arc::as_ref));
    }

    /// Gives a file its place among those of its table: a second name, or a copy where none can be
    /// had, as of an object store.
    fn place(&self, schema: &TableSchema, proven: &Proven, (seq, late): (SequenceNumber, bool)) -> Result<DataFile> {
        let Proven { path: from, file, .. } = proven;
        let day = PartitionDay::from_time_ns(file.min_time);
        let path = data_file_path(schema, day, self.new_id());
        let to = self.root.join(&path);
        let (vfs, failed) = (self.vfs.as_ref(), |action, path: &Path, e| Error::io(action, path, e));
        if let Some(folder) = to.parent() {
            vfs.create_dir_all(folder).map_err(|e| failed("create folder", folder, e))?;
        }
        vfs.open(from).and_then(|file| file.sync_all()).map_err(|e| failed("sync", from, e))?;
        if self.is_remote() || vfs.hard_link(from, &to).is_err() {
            copy_file(vfs, from, &to, |bytes, crc32c| crate::datafile::compare_bytes(from, file, bytes, crc32c))
                .inspect_err(|_| self.leftovers.leave(&path))?;
        }
        Ok(DataFile { path, min_seq: seq.0, max_seq: seq.0, late, ..file.clone() })
    }

    fn commit_adopted(
        &self,
        manifest: &mut LockedManifest<'_>,
        adoption: &Adoption,
        proven: &[ProvenTable],
        made: &[Vec<Arc<DataFile>>],
    ) -> Result<()> {
        let table = |(proven, files): (&ProvenTable, &Vec<Arc<DataFile>>)| TableEdit {
            database: proven.schema.database.to_string(),
            table: proven.schema.table.to_string(),
            files_added: files.clone(),
            widened: proven.files.iter().any(|file| file.is_narrow),
            ..TableEdit::default()
        };
        let Adoption { origin, from, cut, .. } = adoption;
        let adopted = AdoptionEdit { origin: origin.clone(), from: from.clone(), cut: cut.clone() };
        let tables = proven.iter().zip(made).map(table).collect();
        manifest.commit(ManifestEdit { tables, adopted: Some(adopted), ..ManifestEdit::default() })
    }
}

fn not_valid(name: &str, error: &dyn std::error::Error) -> Error {
    let source = error.source().map(|source| format!(": {source}")).unwrap_or_default();
    Error::InvalidPayload { format: "pushed", reason: format!("file {name}: {error}{source}") }
}

fn changed_meanwhile() -> Error {
    let retry_after = std::time::Duration::from_secs(1);
    Error::Busy { reason: "a table is being changed that rows are adopted for", retry_after }
}

/// Returns whether a cut is here already; fails if it does not follow what is here.
fn is_adopted(known: Option<&CutName>, adoption: &Adoption) -> Result<bool> {
    let Adoption { origin, from, cut, .. } = adoption;
    if known == Some(cut) {
        return Ok(true);
    }
    if known == from.as_ref() && cut.number == known.map_or(0, |known| known.number).saturating_add(1) {
        return Ok(false);
    }
    let here = known.map_or_else(|| "nothing".to_owned(), |known| format!("cut {known}"));
    Err(Error::Diverged { reason: format!("of {origin} there is {here}; cut {cut} does not follow it") })
}

/// Whether rows of a file may have the primary key of rows that are here.
fn is_late(manifest: &Manifest, schema: &TableSchema, file: &DataFile) -> bool {
    let known = manifest.state().table(&schema.database, &schema.table);
    let overlaps = || known.is_some_and(|table| table.files.iter().any(|known| known.overlaps(file)));
    schema.has_primary_key && (file.late || overlaps())
}

/// Reads the rows of a file of a table; returns what it is, and whether a column of it is narrower
/// than the table's.
fn prove_rows(shared: &Shared, path: &Path, schema: &TableSchema, said: &DataFile) -> Result<(DataFile, bool)> {
    let opened = OpenDataFile::open(shared.vfs.as_ref(), path)?;
    let is_narrow = check_columns(&opened.schema(), schema)?;
    let has = |tag: &&str| opened.footer().schema().index_of(tag).is_ok();
    let sorted_by: Vec<String> =
        schema.tags().map(|tag| &*tag.name).filter(has).chain([TIME_COLUMN]).map(str::to_owned).collect();
    let Examined { time_unit, rows, time_bounds, columns, violation, .. } =
        examine(&opened, &sorted_by, said.hourly, |_| schema.has_primary_key)?;
    if let Some(violation) = violation {
        return match sorted_by == said.sorted_by {
            true => refused(violation),
            false => refused(format!("its rows are sorted by {:?}, and should be by {sorted_by:?}", said.sorted_by)),
        };
    }
    let Some((min_time, max_time)) = time_bounds else { return refused("it has no rows") };
    if columns.first().is_none_or(|time| time.null_count > 0) {
        return refused("it has rows without a time");
    }
    if PartitionDay::from_time_ns(min_time) != PartitionDay::from_time_ns(max_time) {
        return refused("it has rows of more than one day");
    }
    for column in &columns {
        let wider = schema.columns.iter().find(|known| *known.name == column.name);
        let is_float = wider.is_some_and(|known| known.data_type == arrow::datatypes::DataType::Float64);
        if is_float && !column.fits_floats() {
            return refused(format!("column {:?} is of floats here, and has integers beyond 2^53", column.name));
        }
    }
    let DataFile { bytes, crc32c, tail, hourly, late, .. } = *said;
    let file = DataFile {
        path: String::new(),
        bytes,
        crc32c,
        tail,
        rows,
        time_unit,
        min_time,
        max_time,
        min_seq: 0,
        max_seq: 0,
        deleted_seq: 0,
        hourly,
        late,
        sorted_by,
        columns,
    };
    Ok((file, is_narrow))
}

/// Compares the columns of a file with those of its table; returns whether one of them is narrower.
fn check_columns(found: &arrow::datatypes::Schema, schema: &TableSchema) -> Result<bool> {
    let table = schema.arrow();
    let mut is_narrow = false;
    for (index, field) in found.fields().iter().enumerate() {
        if (index == 0) != (field.name() == TIME_COLUMN) {
            return refused(format!("column {index} is {:?}, and the first should be the time", field.name()));
        }
        let Ok(known) = table.field_with_name(field.name()) else {
            return refused(format!("its table has no column {:?}", field.name()));
        };
        if known.data_type() != field.data_type() {
            if !may_become(field.data_type(), known.data_type()) {
                let (is, should) = (field.data_type(), known.data_type());
                return refused(format!("column {:?} has type {is}, its table's has {should}", field.name()));
            }
            is_narrow = true;
        }
    }
    Ok(is_narrow)
}
