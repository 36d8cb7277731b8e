//! One map of the payload: which of the known keys it has, and what they hold.
//!
//! Knows the forms of a map but no table. Columns and tags are only found here, and read when their
//! table is known.

use std::borrow::Cow;

use super::{
    ItemFault, MAX_NAMES,
    reader::{MsgpackReader, MsgpackValue},
    refuse, repeated,
    text::{text, utf8},
    time::Time,
};
use crate::{buffer::Scalar, ingest::staged::short};

/// The keys that a map may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Name,
    Columns,
    Time,
    Host,
    Fields,
    NumberedFields,
    Tags,
}

impl Key {
    fn name(self) -> &'static str {
        match self {
            Self::Name => "m",
            Self::Columns => "columns",
            Self::Time => "t",
            Self::Host => "h",
            Self::Fields => "fields",
            Self::NumberedFields => "f",
            Self::Tags => "tags",
        }
    }

    /// Takes a key of the map. An unknown one is refused, for what it holds would be dropped in
    /// silence.
    fn of(key: &[u8]) -> Result<Self, ItemFault> {
        Ok(match key {
            b"m" => Self::Name,
            b"columns" => Self::Columns,
            b"t" => Self::Time,
            b"h" => Self::Host,
            b"fields" => Self::Fields,
            b"f" => Self::NumberedFields,
            b"tags" => Self::Tags,
            _ => {
                let expected = "expected one of m, columns, t, h, fields, f, tags";
                return refuse(format!("unknown key {:?}, {expected}", short(utf8_key(key, "a key of the map")?)));
            }
        })
    }
}

/// The tag that `h` stands for.
const HOST: &str = "host";

/// A map being read. Used again for the next one, so that its lists are allocated once.
#[derive(Debug, Default)]
pub(super) struct Item<'a> {
    pub(super) name: Option<Cow<'a, str>>,
    /// Where the columns are.
    pub(super) columns: Option<MsgpackReader<'a>>,
    /// Whether they end the map and were not passed over: the reader of the map stands before them.
    pub(super) columns_are_next: bool,
    pub(super) time: Option<Time>,
    /// Empty when absent.
    host: Cow<'a, str>,
    tags: Option<MsgpackReader<'a>>,
    /// The bytes that decide the tags: those of `tags` and of `h`.
    pub(super) tag_bytes: (&'a [u8], &'a [u8]),
    /// Those that have a value.
    pub(super) fields: Vec<(Cow<'a, str>, Scalar<'a>)>,
    has_fields: bool,
}

impl<'a> Item<'a> {
    /// Reads the next map.
    pub(super) fn read(&mut self, reader: &mut MsgpackReader<'a>) -> Result<(), ItemFault> {
        let fields = std::mem::take(&mut self.fields);
        // Absent bytes are empty ones of the body: glibc compares with masked loads, which at the
        // address of an empty slice that points nowhere cost 100 ns.
        let absent = reader.since(reader);
        *self = Self { fields, tag_bytes: (absent, absent), ..Self::default() };
        self.fields.clear();
        let pairs = match reader.next()? {
            MsgpackValue::Map(pairs) => pairs,
            other => return refuse(format!("the item is {}, expected a map", other.kind())),
        };
        let mut seen = 0u8;
        for left in (0..pairs).rev() {
            let key = Key::of(raw_key(reader, "a key of the map")?)?;
            if seen & (1 << key as u8) != 0 {
                return refuse(format!("key {:?} comes twice", key.name()));
            }
            seen |= 1 << key as u8;
            if key == Key::Columns && left == 0 {
                self.columns = Some(*reader);
                self.columns_are_next = true;
            } else {
                self.value(key, reader)?;
            }
        }
        let row = self.has_fields || self.time.is_some() || self.tags.is_some() || !self.host.is_empty();
        if self.columns.is_some() && row {
            return refuse("a map with \"columns\" has no \"t\", \"h\", \"tags\" or fields beside them");
        }
        Ok(())
    }

    fn value(&mut self, key: Key, reader: &mut MsgpackReader<'a>) -> Result<(), ItemFault> {
        let start = *reader;
        let value = reader.next()?;
        match (key, value) {
            (Key::Columns, _) => {
                *reader = start;
                reader.skip()?;
                self.columns = Some(start);
            }
            (_, MsgpackValue::Nil) => {}
            (Key::Name, value) => self.name = Some(text_or_number(key, &value, "measurement_")?),
            (Key::Host, value) => {
                self.host = text_or_number(key, &value, "host_")?;
                self.tag_bytes.1 = reader.since(&start);
            }
            (Key::Time, value) => {
                let time = Time::of(&value).map_err(|found| ItemFault::item(format!("the time \"t\" is {found}")))?;
                self.time = Some(time);
            }
            (Key::Tags, MsgpackValue::Map(_)) => {
                *reader = start;
                reader.skip()?;
                self.tags = Some(start);
                self.tag_bytes.0 = reader.since(&start);
            }
            (Key::Fields, MsgpackValue::Map(count)) => self.named_fields(count, reader)?,
            (Key::NumberedFields, MsgpackValue::Array(count)) => self.numbered_fields(count, reader)?,
            (key, value) => {
                let expected = if key == Key::NumberedFields { "an array" } else { "a map" };
                return refuse(format!("{:?} is {}, expected {expected}", key.name(), value.kind()));
            }
        }
        Ok(())
    }

    fn named_fields(&mut self, count: usize, reader: &mut MsgpackReader<'a>) -> Result<(), ItemFault> {
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

    fn numbered_fields(&mut self, count: usize, reader: &mut MsgpackReader<'a>) -> Result<(), ItemFault> {
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

    fn begin_fields(&mut self, count: usize) -> Result<(), ItemFault> {
        if std::mem::replace(&mut self.has_fields, true) {
            return refuse("the row has both \"fields\" and \"f\"");
        }
        check_count("fields", count)
    }

    /// Checks that the row has a value at all.
    pub(super) fn check_fields(&self) -> Result<(), ItemFault> {
        match (self.has_fields, self.fields.is_empty()) {
            (false, _) => refuse("there are no \"columns\", no \"fields\" and no \"f\", expected one of them"),
            (true, true) => refuse("no field has a value, expected at least one"),
            (true, false) => Ok(()),
        }
    }

    /// Reads the tags that have a value into `into`. The row's own tag `host` comes before `h`.
    pub(super) fn read_tags(&self, into: &mut Vec<(&'a str, Cow<'a, str>)>) -> Result<(), ItemFault> {
        into.clear();
        if let Some(mut reader) = self.tags
            && let MsgpackValue::Map(count) = reader.next()?
        {
            check_count("tags", count)?;
            for _ in 0..count {
                let name = key(&mut reader, "a tag name")?;
                let value = text(&reader.next()?)
                    .map_err(|found| ItemFault::item(format!("tag {:?} is {found}", short(name))))?;
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
pub(super) fn check_count(what: &str, count: usize) -> Result<(), ItemFault> {
    if count > MAX_NAMES {
        return refuse(format!("there are {count} {what}, expected at most {MAX_NAMES}"));
    }
    Ok(())
}

/// Reads a key of a map.
fn raw_key<'a>(reader: &mut MsgpackReader<'a>, what: &str) -> Result<&'a [u8], ItemFault> {
    if let Some(short) = reader.short_text() {
        return Ok(short);
    }
    match reader.next()? {
        MsgpackValue::Text(bytes) => Ok(bytes),
        other => refuse(format!("{what} is {}, expected a string", other.kind())),
    }
}

fn utf8_key<'a>(key: &'a [u8], what: &str) -> Result<&'a str, ItemFault> {
    utf8(key).map_err(|found| ItemFault::item(format!("{what} is {found}")))
}

/// Reads a key of a map that is a name.
pub(super) fn key<'a>(reader: &mut MsgpackReader<'a>, what: &str) -> Result<&'a str, ItemFault> {
    utf8_key(raw_key(reader, what)?, what)
}

/// Reads the value of `m` or `h`.
fn text_or_number<'a>(key: Key, value: &MsgpackValue<'a>, prefix: &str) -> Result<Cow<'a, str>, ItemFault> {
    match value {
        MsgpackValue::Text(bytes) => match utf8(bytes) {
            Ok(text) => Ok(Cow::Borrowed(text)),
            Err(found) => refuse(format!("{:?} is {found}", key.name())),
        },
        MsgpackValue::Integer(number) => Ok(Cow::Owned(format!("{prefix}{number}"))),
        MsgpackValue::Unsigned(number) => Ok(Cow::Owned(format!("{prefix}{number}"))),
        other => refuse(format!("{:?} is {}, expected a string or an integer", key.name(), other.kind())),
    }
}

/// Takes a value for a field's; nil is none. `Err` says what it is instead.
pub(super) fn scalar(value: MsgpackValue<'_>) -> Result<Option<Scalar<'_>>, String> {
    Ok(Some(match value {
        MsgpackValue::Nil => return Ok(None),
        MsgpackValue::Boolean(value) => Scalar::Boolean(value),
        MsgpackValue::Integer(value) => Scalar::Integer(value),
        MsgpackValue::Unsigned(value) => Scalar::Unsigned(value),
        MsgpackValue::Float(value) => Scalar::Float(value),
        MsgpackValue::Text(bytes) => Scalar::Text(utf8(bytes)?),
        other => return Err(format!("{}, expected a number, string, boolean or nil", other.kind())),
    }))
}

fn in_field(name: &str, found: &str) -> ItemFault {
    ItemFault::item(format!("field {:?} is {found}", short(name)))
}
