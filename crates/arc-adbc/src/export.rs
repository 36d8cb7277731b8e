//! The functions that driver managers look for in the shared library.
#![allow(unsafe_code, reason = "the symbols of a C interface")]

use crate::database::ArcDriver;

adbc_ffi::export_driver!(AdbcDriverArcInit, ArcDriver);
