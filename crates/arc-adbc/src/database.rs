//! The driver, and a database of it: one data directory.

use std::sync::{Arc, Mutex, PoisonError};

use adbc_core::{
    Database, Driver, Optionable,
    error::Result,
    options::{OptionConnection, OptionDatabase, OptionValue},
};
use arc_core::Durability;

use crate::{
    connection::ArcConnection,
    errors::{invalid, state},
    open::{Mode, OpenEngine},
    options::{DATABASE, DURABILITY, MODE, only_texts, parsed, text, unknown, unknown_to_set},
    place::Place,
    runtime::guarded,
};

/// Database of statements that name none.
const DEFAULT_DATABASE: &str = "default";

/// The entry to everything else.
#[derive(Debug, Default)]
pub struct ArcDriver;

impl Driver for ArcDriver {
    type DatabaseType = ArcDatabase;

    fn new_database(&mut self) -> Result<ArcDatabase> {
        self.new_database_with_opts([])
    }

    fn new_database_with_opts(
        &mut self,
        options: impl IntoIterator<Item = (OptionDatabase, OptionValue)>,
    ) -> Result<ArcDatabase> {
        let mut database = ArcDatabase::default();
        options.into_iter().try_for_each(|(key, value)| database.set_option(key, value))?;
        Ok(database)
    }
}

/// A data directory, opened by its first connection.
#[derive(Debug, Default)]
pub struct ArcDatabase {
    uri: Option<(String, Place)>,
    mode: Mode,
    durability: Option<Durability>,
    database: Option<String>,
    engine: Mutex<Option<Arc<OpenEngine>>>,
}

impl ArcDatabase {
    fn engine(&self) -> Result<Arc<OpenEngine>> {
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = engine.as_ref() {
            return Ok(Arc::clone(engine));
        }
        let (_, place) =
            self.uri.as_ref().ok_or_else(|| invalid("option \"uri\" is missing: the folder with the data"))?;
        let opened = guarded(|| place.open(self.mode))?;
        Ok(Arc::clone(engine.insert(Arc::new(opened))))
    }
}

impl Optionable for ArcDatabase {
    type Option = OptionDatabase;

    fn set_option(&mut self, key: OptionDatabase, value: OptionValue) -> Result<()> {
        if self.engine.get_mut().unwrap_or_else(PoisonError::into_inner).is_some() {
            return Err(state(format!("option {:?} is set before the first connection", key.as_ref())));
        }
        let value = text(key.as_ref(), value)?;
        match key {
            OptionDatabase::Uri => {
                let place = Place::of(&value)?;
                self.uri = Some((value, place));
            }
            OptionDatabase::Other(key) => match key.as_str() {
                MODE => {
                    self.mode = match value.as_str() {
                        "rw" => Mode::ReadWrite,
                        "r" => Mode::Read,
                        other => return Err(invalid(format!("option {MODE:?}: {other:?} is none of r, rw"))),
                    }
                }
                DURABILITY => self.durability = Some(parsed(DURABILITY, &value, "disk, process or memory")?),
                DATABASE => self.database = Some(value),
                key => return Err(unknown_to_set(key)),
            },
            key => return Err(unknown_to_set(key.as_ref())),
        }
        Ok(())
    }

    fn get_option_string(&self, key: OptionDatabase) -> Result<String> {
        let value = match &key {
            OptionDatabase::Uri => self.uri.as_ref().map(|(uri, _)| uri.clone()),
            OptionDatabase::Other(name) => match name.as_str() {
                MODE => Some(if self.mode == Mode::Read { "r" } else { "rw" }.to_owned()),
                DURABILITY => self.durability.map(|durability| durability.to_string()),
                DATABASE => self.database.clone(),
                _ => None,
            },
            _ => None,
        };
        value.ok_or_else(|| unknown(key.as_ref()))
    }

    only_texts!(OptionDatabase);
}

impl Database for ArcDatabase {
    type ConnectionType = ArcConnection;

    fn new_connection(&self) -> Result<ArcConnection> {
        self.new_connection_with_opts([])
    }

    fn new_connection_with_opts(
        &self,
        options: impl IntoIterator<Item = (OptionConnection, OptionValue)>,
    ) -> Result<ArcConnection> {
        let database = self.database.as_deref().unwrap_or(DEFAULT_DATABASE).to_owned();
        let mut connection = ArcConnection::new(self.engine()?, database, self.durability);
        options.into_iter().try_for_each(|(key, value)| connection.set_option(key, value))?;
        Ok(connection)
    }
}
