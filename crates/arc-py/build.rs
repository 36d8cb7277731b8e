//! Lets the module link on macOS, where the interpreter that loads it brings Python's symbols.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
