//! The `arc-server` binary: picks the allocator, then hands over to the library.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    arc_server::run(std::env::args_os(), std::env::vars_os())
}
