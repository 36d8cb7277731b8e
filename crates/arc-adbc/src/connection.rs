//! A connection: the database that statements are for, and what there is to be asked about.

use std::{collections::HashSet, sync::Arc};

use adbc_core::{
    CancelHandle, Connection, Optionable,
    error::{Error, Result, Status},
    options::{InfoCode, ObjectDepth, OptionConnection, OptionValue},
    schemas::GET_TABLE_TYPES_SCHEMA,
};
use arc_core::{Durability, Statement, WriteOptions};
use arrow::{
    array::{RecordBatch, RecordBatchIterator, StringArray},
    datatypes::Schema,
};

use crate::{
    errors::{OrAdbc as _, invalid, state, unsupported},
    info,
    objects::{self, Asked, CATALOG, TABLE},
    open::OpenEngine,
    options::{DATABASE, DICTIONARIES, flag, only_texts, text, unknown, unknown_to_set},
    rows::{self, Reader, Rows},
    runtime::{Cancel, Canceller, guarded, wait},
    statement::{ArcStatement, Partition},
};

/// A connection to a data directory.
#[derive(Debug)]
pub struct ArcConnection {
    shared: Shared,
    cancel: Arc<Cancel>,
}

/// What a connection and its statements have in common.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) engine: Arc<OpenEngine>,
    pub(crate) database: String,
    pub(crate) only_reads: bool,
    pub(crate) dictionaries: bool,
    /// How durable written rows are, if the database of the connection says so: the engine may be one that another has
    /// opened.
    pub(crate) durability: Option<Durability>,
}

impl Shared {
    /// Returns the options of a write.
    pub(crate) fn write_options(&self) -> WriteOptions {
        let options = WriteOptions::new();
        match self.durability {
            Some(durability) => options.durability(durability),
            // Whoever opened the engine may have asked for less.
            None if self.engine.durability() != Durability::Disk => options.durability(Durability::Disk),
            None => options,
        }
    }
}

impl ArcConnection {
    pub(crate) fn new(engine: Arc<OpenEngine>, database: String, durability: Option<Durability>) -> Self {
        let only_reads = engine.is_reader();
        let shared = Shared { engine, database, only_reads, dictionaries: false, durability };
        Self { shared, cancel: Arc::default() }
    }
}

impl Optionable for ArcConnection {
    type Option = OptionConnection;

    fn set_option(&mut self, key: OptionConnection, value: OptionValue) -> Result<()> {
        let name = key.as_ref().to_owned();
        match (key, name.as_str()) {
            (OptionConnection::AutoCommit, _) => {
                if !flag(&name, &value)? {
                    return Err(unsupported(
                        "there are no transactions: each statement is one, and autocommit stays on",
                    ));
                }
            }
            (OptionConnection::ReadOnly, _) => {
                let only_reads = flag(&name, &value)?;
                if self.shared.engine.is_reader() && !only_reads {
                    return Err(invalid("the folder was opened to read only, by the option \"arc.mode\""));
                }
                self.shared.only_reads = only_reads;
            }
            (OptionConnection::CurrentCatalog, _) => objects::check_catalog(Some(&text(&name, value)?))?,
            (OptionConnection::CurrentSchema, _) | (_, DATABASE) => self.shared.database = text(&name, value)?,
            (_, DICTIONARIES) => self.shared.dictionaries = flag(&name, &value)?,
            _ => return Err(unknown_to_set(&name)),
        }
        Ok(())
    }

    fn get_option_string(&self, key: OptionConnection) -> Result<String> {
        Ok(match (&key, key.as_ref()) {
            (OptionConnection::AutoCommit, _) => "true".to_owned(),
            (OptionConnection::ReadOnly, _) => self.shared.only_reads.to_string(),
            (OptionConnection::CurrentCatalog, _) => CATALOG.to_owned(),
            (OptionConnection::CurrentSchema, _) | (_, DATABASE) => self.shared.database.clone(),
            (_, DICTIONARIES) => self.shared.dictionaries.to_string(),
            (_, name) => return Err(unknown(name)),
        })
    }

    only_texts!(OptionConnection);
}

impl Connection for ArcConnection {
    type StatementType = ArcStatement;

    fn new_statement(&mut self) -> Result<ArcStatement> {
        Ok(ArcStatement::new(self.shared.clone()))
    }

    fn get_cancel_handle(&self) -> Box<dyn CancelHandle> {
        Box::new(Canceller(Arc::clone(&self.cancel)))
    }

    fn get_info(&self, codes: Option<HashSet<InfoCode>>) -> Result<Reader> {
        one(info::batch(codes.as_ref())?)
    }

    fn get_objects(
        &self,
        depth: ObjectDepth,
        catalog: Option<&str>,
        db_schema: Option<&str>,
        table_name: Option<&str>,
        table_type: Option<Vec<&str>>,
        column_name: Option<&str>,
    ) -> Result<Reader> {
        let with_tables = table_type.is_none_or(|types| types.contains(&TABLE));
        let asked = Asked { depth, catalog, database: db_schema, table: table_name, column: column_name, with_tables };
        one(guarded(|| objects::batch(&self.shared.engine, &asked))?)
    }

    fn get_table_schema(&self, catalog: Option<&str>, db_schema: Option<&str>, table_name: &str) -> Result<Schema> {
        objects::check_catalog(catalog).map_err(|error| Error { status: Status::NotFound, ..error })?;
        let database = db_schema.filter(|name| !name.is_empty()).unwrap_or(&self.shared.database).to_owned();
        let engine = Arc::clone(&self.shared.engine);
        engine.schema(&database, table_name).or_adbc()?;
        let sql = format!("SELECT * FROM \"{}\"", table_name.replace('"', "\"\""));
        let described = wait(async move {
            let statement = Statement::parse(&sql)?;
            engine.describe(&database, &statement, None).await
        });
        Ok(rows::layout(&described?.or_adbc()?.columns, self.shared.dictionaries).as_ref().clone())
    }

    fn get_table_types(&self) -> Result<Reader> {
        let types = Arc::new(StringArray::from(vec![TABLE]));
        one(RecordBatch::try_new(Arc::clone(&GET_TABLE_TYPES_SCHEMA), vec![types])?)
    }

    fn get_statistic_names(&self) -> Result<Reader> {
        Err(unsupported("there are no statistics of this driver"))
    }

    fn get_statistics(
        &self,
        _catalog: Option<&str>,
        _db_schema: Option<&str>,
        _table_name: Option<&str>,
        _approximate: bool,
    ) -> Result<Reader> {
        Err(unsupported(
            "there are no statistics of this driver; ask by SQL: count(*), min and max cost next to nothing",
        ))
    }

    fn commit(&mut self) -> Result<()> {
        Err(state("there is no transaction: autocommit is on"))
    }

    fn rollback(&mut self) -> Result<()> {
        Err(state("there is no transaction: autocommit is on"))
    }

    fn read_partition(&self, partition: impl AsRef<[u8]>) -> Result<Reader> {
        let partition = Partition::decode(partition.as_ref())?;
        let shared = Shared { database: partition.database, ..self.shared.clone() };
        let statement = Statement::parse(&partition.sql).or_adbc()?;
        Ok(Box::new(Rows::of(&shared, &self.cancel, statement, None)?))
    }
}

fn one(batch: RecordBatch) -> Result<Reader> {
    let schema = batch.schema();
    Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
}
