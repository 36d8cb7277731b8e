//! Push: the command `push`, from a data directory to a running server or another directory, and the endpoints
//! `/api/v1/push…`, which take what it sends.
//!
//! What is sent, and that each row arrives once, is `arc_core`'s part (`Engine::push`). Here is how it gets there.

mod command;
mod endpoint;

pub(crate) use command::{command, run};
pub(crate) use endpoint::{adopt, receive, received, status};
