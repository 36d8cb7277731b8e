//! Lists of what others hold as well, written as if it were owned.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) fn serialize<T: Serialize, S: Serializer>(items: &[Arc<T>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(items.iter().map(Arc::as_ref))
}

pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Vec<Arc<T>>, D::Error> {
    Ok(Vec::deserialize(from)?.into_iter().map(Arc::new).collect())
}
