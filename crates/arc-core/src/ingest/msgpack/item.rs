//! One map of the payload: which of the known keys it has, and what they hold.
//!
//! Knows the forms of a map but no table. Columns and tags are only found here, and read when their table is known.

use std::borrow::Cow;

use super::{
    Fault, MAX_NAMES,
    reader::{Reader, Value},
    refuse, repeated,
    text::{text, utf8},
    time::Time,
};
use crate::{buffer::Scalar, ingest::staged::short};

/// The keys that a map may have. An unknown key is refused: what it holds would be dropped in silence.
const KEYS: [&str; 7] = ["m", "columns", "t", "h", "fields", "f", "tags"];

/// The tag that `h` stands for.
const HOST: &str = "host";

/// A map being read. Used again for the next one, so that its lists are allocated once.
#[derive(Debug, Default)]
pub(super) struct Item<'a> {
    pub(super) name: Option<Cow<'a, str>>,
    /// Where the columns are.
    pub(super) columns: Option<Reader<'a>>,
    pub(super) time: Option<Time>,
    /// Empty when absent.
    host: Cow<'a, str>,
    tags: Option<Reader<'a>>,
    /// The bytes that decide the tags: those of `tags` and of `h`.
    pub(super) tag_bytes: (&'a [u8], &'a [u8]),
    /// Those that have a value.
    pub(super) fields: Vec<(Cow<'a, str>, Scalar<'a>)>,
    has_fields: bool,
}

impl<'a> Item<'a> {
    /// Reads the next map.
    pub(super) fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), Fault> {
        let fields = std::mem::take(&mut self.fields);
        *self = Self { fields, ..Self::default() };
        self.fields.clear();
        let pairs = match reader.next()? {
            Value::Map(pairs) => pairs,
            other => return refuse(format!("the item is {}, expected a map", other.kind())),
        };
        let mut seen = [false; KEYS.len()];
        for _ in 0..pairs {
            let key = key(reader, "a key of the map")?;
            let known = KEYS.iter().zip(&mut seen).find(|(known, _)| **known == key);
            match known {
                Some((_, true)) => return refuse(format!("key {key:?} comes twice")),
                Some((_, seen)) => *seen = true,
                None => {
                    return refuse(format!("unknown key {:?}, expected one of {}", short(key), KEYS.join(", ")));
                }
            }
            self.value(key, reader)?;
        }
        let row = self.has_fields || self.time.is_some() || self.tags.is_some() || !self.host.is_empty();
        if self.columns.is_some() && row {
            return refuse("a map with \"columns\" has no \"t\", \"h\", \"tags\" or fields beside them");
        }
        Ok(())
    }

    fn value(&mut self, key: &str, reader: &mut Reader<'a>) -> Result<(), Fault> {
        let start = *reader;
        let value = reader.next()?;
        match (key, value) {
            ("m", Value::Nil) | ("t" | "h" | "tags" | "fields" | "f", Value::Nil) => {}
            ("m", value) => self.name = name("m", &value, "measurement_")?,
            ("h", value) => {
                self.host = name("h", &value, "host_")?.unwrap_or_default();
                self.tag_bytes.1 = reader.since(&start);
            }
            ("t", value) => {
                let time = Time::of(&value).map_err(|found| Fault::Item(format!("the time \"t\" is {found}")))?;
                self.time = Some(time);
            }
            ("columns", Value::Map(_)) => {
                self.columns = Some(start);
                *reader = start;
                reader.skip()?;
            }
            ("tags", Value::Map(_)) => {
                self.tags = Some(start);
                *reader = start;
                reader.skip()?;
                self.tag_bytes.0 = reader.since(&start);
            }
            ("fields" | "f", Value::Map(_) | Value::Array(_)) if self.has_fields => {
                return refuse("the row has both \"fields\" and \"f\"");
            }
            ("fields", Value::Map(count)) => self.named_fields(count, reader)?,
            ("f", Value::Array(count)) => self.numbered_fields(count, reader)?,
            (key, value) => {
                let expected = if key == "f" { "an array" } else { "a map" };
                return refuse(format!("{key:?} is {}, expected {expected}", value.kind()));
            }
        }
        Ok(())
    }

    fn named_fields(&mut self, count: usize, reader: &mut Reader<'a>) -> Result<(), Fault> {
        self.begin_fields(count)?;
        for _ in 0..count {
            let name = key(reader, "a field name")?;
            let value = reader.next()?;
            if let Some(value) = scalar(value).map_err(|found| in_field(name, &found))? {
                self.fields.push((Cow::Borrowed(name), value));
            }
        }
        Ok(())
    }

    fn numbered_fields(&mut self, count: usize, reader: &mut Reader<'a>) -> Result<(), Fault> {
        self.begin_fields(count)?;
        for number in 0..count {
            let name = format!("field_{number}");
            let value = reader.next()?;
            if let Some(value) = scalar(value).map_err(|found| in_field(&name, &found))? {
                self.fields.push((Cow::Owned(name), value));
            }
        }
        Ok(())
    }

    fn begin_fields(&mut self, count: usize) -> Result<(), Fault> {
        self.has_fields = true;
        check_count("fields", count)
    }

    /// Checks that the row has a value at all.
    pub(super) fn check_fields(&self) -> Result<(), Fault> {
        match (self.has_fields, self.fields.is_empty()) {
            (false, _) => refuse("there are no \"columns\", no \"fields\" and no \"f\", expected one of them"),
            (true, true) => refuse("no field has a value, expected at least one"),
            (true, false) => Ok(()),
        }
    }

    /// Reads the tags that have a value into `into`. The row's own tag `host` comes before `h`.
    pub(super) fn read_tags(&self, into: &mut Vec<(&'a str, Cow<'a, str>)>) -> Result<(), Fault> {
        into.clear();
        if let Some(mut reader) = self.tags
            && let Value::Map(count) = reader.next()?
        {
            check_count("tags", count)?;
            for _ in 0..count {
                let name = key(&mut reader, "a tag name")?;
                let value =
                    text(&reader.next()?).map_err(|found| Fault::Item(format!("tag {:?} is {found}", short(name))))?;
                into.push((name, value));
            }
        }
        if let Some(name) = repeated(into.iter().map(|(name, _)| *name)) {
            return refuse(format!("tag {:?} comes twice", short(name)));
        }
        into.retain(|(_, value)| !value.is_empty());
        if !self.host.is_empty() && into.iter().all(|(name, _)| *name != HOST) {
            into.push((HOST, self.host.clone()));
        }
        Ok(())
    }
}

/// Checks that a map of columns, fields or tags is of a size that can be checked quickly.
pub(super) fn check_count(what: &str, count: usize) -> Result<(), Fault> {
    if count > MAX_NAMES {
        return refuse(format!("there are {count} {what}, expected at most {MAX_NAMES}"));
    }
    Ok(())
}

/// Reads a key of a map.
pub(super) fn key<'a>(reader: &mut Reader<'a>, what: &str) -> Result<&'a str, Fault> {
    match reader.next()? {
        Value::Text(bytes) => utf8(bytes).map_err(|found| Fault::Item(format!("{what} is {found}"))),
        other => refuse(format!("{what} is {}, expected a string", other.kind())),
    }
}

/// Reads the value of `m` or `h`, which may be a number.
fn name<'a>(key: &str, value: &Value<'a>, prefix: &str) -> Result<Option<Cow<'a, str>>, Fault> {
    match value {
        Value::Text(bytes) => match utf8(bytes) {
            Ok(text) => Ok(Some(Cow::Borrowed(text))),
            Err(found) => refuse(format!("{key:?} is {found}")),
        },
        Value::Integer(number) => Ok(Some(Cow::Owned(format!("{prefix}{number}")))),
        Value::Unsigned(number) => Ok(Some(Cow::Owned(format!("{prefix}{number}")))),
        other => refuse(format!("{key:?} is {}, expected a string or an integer", other.kind())),
    }
}

/// Takes a value for a field's; nil is none. `Err` says what it is instead.
pub(super) fn scalar(value: Value<'_>) -> Result<Option<Scalar<'_>>, String> {
    Ok(Some(match value {
        Value::Nil => return Ok(None),
        Value::Boolean(value) => Scalar::Boolean(value),
        Value::Integer(value) => Scalar::Integer(value),
        Value::Unsigned(value) => Scalar::Unsigned(value),
        Value::Float(value) => Scalar::Float(value),
        Value::Text(bytes) => Scalar::Text(utf8(bytes)?),
        other => return Err(format!("{}, expected a number, string, boolean or nil", other.kind())),
    }))
}

fn in_field(name: &str, found: &str) -> Fault {
    Fault::Item(format!("field {:?} is {found}", short(name)))
}
