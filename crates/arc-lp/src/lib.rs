//! Line protocol.
#![no_std]
