//! What an acknowledged point survives, and the names of that.

use std::{fmt, str::FromStr};

/// What an acknowledged point survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Durability {
    /// Nothing is promised: acknowledged once in memory.
    Memory,
    /// `kill -9`, panic, running out of memory: acknowledged once the log's `write` returned.
    Process,
    /// Crash of the operating system and loss of power, too: acknowledged once the log is synced to
    /// disk.
    #[default]
    Disk,
    /// Loss of the machine with its disk, too: acknowledged once its group of the log is an object
    /// in the object store, and so is everything before it in the log. Refused without an
    /// object store. A put takes some 10 to 100 ms, and there is one each
    /// [`Options::remote_interval`](crate::Options::remote_interval) at most.
    Remote,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Process => "process",
            Self::Disk => "disk",
            Self::Remote => "remote",
        })
    }
}

impl FromStr for Durability {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "memory" => Ok(Self::Memory),
            "process" => Ok(Self::Process),
            "disk" => Ok(Self::Disk),
            "remote" => Ok(Self::Remote),
            _ => Err(format!("{s:?} is not a durability; expected memory, process, disk or remote")),
        }
    }
}

/// Serialises a durability as its name, for `#[serde(with)]`.
pub(crate) mod durability_name {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use super::Durability;

    pub(crate) fn serialize<S: Serializer>(durability: &Durability, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(durability)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Durability, D::Error> {
        std::borrow::Cow::<'_, str>::deserialize(from)?.parse().map_err(de::Error::custom)
    }

    /// The same for one that may be absent: nil.
    pub(crate) mod optional {
        use super::{Deserialize, Deserializer, Durability, Serializer, de};

        pub(crate) fn serialize<S: Serializer>(durability: &Option<Durability>, to: S) -> Result<S::Ok, S::Error> {
            match durability {
                Some(durability) => to.collect_str(durability),
                None => to.serialize_none(),
            }
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Durability>, D::Error> {
            let name = Option::<std::borrow::Cow<'_, str>>::deserialize(from)?;
            name.map(|name| name.parse()).transpose().map_err(de::Error::custom)
        }
    }
}
