use super::staged::{Context, Staged};
use crate::{Error, Result};
pub(crate) fn decode(_body: &[u8], _context: &Context<'_>) -> Result<Staged> {
    Err(Error::internal("not here yet"))
}
