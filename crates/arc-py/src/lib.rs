//! The native half of the Python package `arc`: the engine, the answers of its SQL, and tables in memory.
//!
//! Converts arguments, gives the interpreter's lock free, calls `arc-core` and hands Arrow data over without a copy.
//! Never stores, decodes or queries anything itself. What needs no Rust (exceptions, receipts) is in `python/arc/`.

mod answer;
mod arguments;
mod engine;
mod errors;
mod import;
mod interrupt;
mod keywords;
mod maintenance;
mod owned;
mod parquet_file;
mod program;
mod progress;
mod push;
mod runtime;
mod schema;
mod statements;
mod table;
mod tail;
mod values;

/// The native half of the package `arc`; import `arc` instead.
#[pyo3::pymodule(name = "_arc", gil_used = false)]
mod module {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        adbc_driver_arc::look_for_interrupts(crate::interrupt::interrupted);
        crate::interrupt::note_thread(module.py())
    }

    #[pymodule_export]
    use crate::answer::Answer;
    #[pymodule_export]
    use crate::engine::{Engine, open};
    #[pymodule_export]
    use crate::interrupt::finish;
    #[pymodule_export]
    use crate::maintenance::{restore, verify};
    #[pymodule_export]
    use crate::parquet_file::ParquetFile;
    #[pymodule_export]
    use crate::program::run_server;
    #[pymodule_export]
    use crate::schema::Schema;
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::tail::{Tail, TailDecoder};
}
