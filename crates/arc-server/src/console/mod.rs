//! The console: the page at `/` that shows a person what is in the server, and the documents that people keep there.
//!
//! The page is built files, made by `scripts/console` from `console/` and part of the program. It asks the endpoints that
//! everybody asks and may do what its token may. Never reads or writes points here.

mod documents;
mod files;
mod request;
mod store;

pub(crate) use self::{
    documents::{create, delete, get, list, put},
    files::{file, is_public, page},
    store::Documents,
};
