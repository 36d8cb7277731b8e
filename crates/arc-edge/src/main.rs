//! The program `arc-edge`: hands over to the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    arc_edge::run(std::env::args_os(), std::env::vars_os().collect())
}
