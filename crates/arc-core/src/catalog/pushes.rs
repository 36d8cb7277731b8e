//! What the manifest says of rows that are handed from one data directory to another.
//!
//! Owns the records of both sides, and the rule that an adoption follows the one before it
//! (docs/format.md, "Push"). Never knows how anything is sent.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ManifestEdit, ManifestState, TableSchema, definition};
use crate::{
    Error, Result,
    model::{Cut, CutName, DataFile},
};

/// Directories whose rows one directory adopts, at most: each takes about 100 bytes of each
/// snapshot.
const MAX_ORIGINS: usize = 1 << 16;

/// How far rows were handed to one other directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PushStream {
    /// The last cut that is known to be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) confirmed: Option<Cut>,
    /// One that may be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<Cut>,
}

impl PushStream {
    /// Returns all of its cuts.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = &Cut> {
        self.confirmed.iter().chain(&self.pending)
    }
}

/// Rows of another directory, up to a cut, that are in the data files which the same commit adds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AdoptionEdit {
    /// The name of the directory that they come from.
    pub(crate) origin: String,
    /// The cut that was there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<CutName>,
    /// The cut that is there now.
    pub(crate) cut: CutName,
}

impl ManifestState {
    /// Returns whether there is anything that a build has to know which does not know cuts: it would
    /// merge files over them, or take the same rows again.
    pub(super) fn has_pushes(&self) -> bool {
        !self.pushes.is_empty() || !self.adopted.is_empty()
    }

    pub(super) fn check_adoption(&self, edit: &ManifestEdit) -> std::result::Result<(), String> {
        let Some(AdoptionEdit { origin, from, cut }) = &edit.adopted else { return Ok(()) };
        let known = self.adopted.get(origin);
        if known != from.as_ref() || Some(cut.number) != known.map_or(0, |known| known.number).checked_add(1) {
            return Err(format!("cut {cut} of {origin} does not follow what was adopted before"));
        }
        if known.is_none() && self.adopted.len() >= MAX_ORIGINS {
            return Err(format!("there are {MAX_ORIGINS} origins already"));
        }
        Ok(())
    }

    pub(super) fn apply_pushes(
        &mut self,
        origin: Option<String>,
        pushes: Option<Vec<PushStream>>,
        adopted: Option<AdoptionEdit>,
    ) {
        self.origin = origin.or(self.origin.take());
        self.pushes = pushes.unwrap_or(std::mem::take(&mut self.pushes));
        if let Some(AdoptionEdit { origin, cut, .. }) = adopted {
            self.adopted.insert(origin, cut);
        }
    }
}

impl ManifestEdit {
    pub(super) fn has_pushes(&self) -> bool {
        self.pushes.is_some() || self.adopted.is_some() || self.tables.iter().any(|table| table.widened)
    }
}

/// What one directory asks another to adopt (docs/format.md, "Push").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Adoption {
    /// The version of this structure.
    pub(crate) arc_push: u32,
    /// The name of the directory that asks.
    pub(crate) origin: String,
    /// The cut that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<CutName>,
    /// The cut up to which these files go.
    pub(crate) cut: CutName,
    /// Tables with files.
    pub(crate) tables: Vec<AdoptionTable>,
}

/// Files of one table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AdoptionTable {
    /// As the directory has it that asks.
    #[serde(with = "definition::required")]
    pub(crate) schema: Arc<TableSchema>,
    /// In the order in which they overwrite each other.
    pub(crate) files: Vec<DataFile>,
}

impl Adoption {
    /// The newest version, and the one that is written.
    pub(crate) const VERSION: u32 = 1;

    /// Returns the bytes that are sent.
    ///
    /// # Errors
    ///
    /// [`Error::Internal`].
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        rmp_serde::to_vec_named(self).map_err(|e| Error::internal(format!("cannot encode an adoption: {e}")))
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPayload`] saying what is wrong with the bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let invalid = |reason| Error::InvalidPayload { format: "pushed", reason };
        let adoption: Self = rmp_serde::from_slice(bytes).map_err(|e| invalid(e.to_string()))?;
        if adoption.arc_push > Self::VERSION {
            let reason = format!("its version is {}; this build reads up to {}", adoption.arc_push, Self::VERSION);
            return Err(invalid(reason));
        }
        Ok(adoption)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adoption_follows_the_one_before_it() {
        let name = |number: u64, id: &str| CutName { number, id: id.into() };
        let adopt = |from: Option<CutName>, cut| {
            let adopted = Some(AdoptionEdit { origin: "o".into(), from, cut });
            ManifestEdit { adopted, ..ManifestEdit::default() }
        };
        let mut state = ManifestState::default();
        assert!(state.check(&adopt(None, name(2, "b"))).is_err());
        assert!(state.check(&adopt(Some(name(0, "")), name(1, "a"))).is_err());
        state.check(&adopt(None, name(1, "a"))).unwrap();
        state.apply(adopt(None, name(1, "a")));
        for (from, cut) in [
            (None, name(1, "a")),
            (Some(name(1, "x")), name(2, "b")),
            (Some(name(1, "a")), name(3, "b")),
            (Some(name(u64::MAX, "a")), name(0, "b")),
        ] {
            assert!(state.check(&adopt(from, cut)).is_err());
        }
        state.check(&adopt(Some(name(1, "a")), name(2, "b"))).unwrap();
    }
}
