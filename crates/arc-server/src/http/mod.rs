//! What every endpoint has in common: routes, the layer around them, the query string.

pub(crate) mod accept;
pub(crate) mod access;
pub(crate) mod around;
pub(crate) mod params;
pub(crate) mod read_only;
pub(crate) mod request_id;
pub(crate) mod router;
