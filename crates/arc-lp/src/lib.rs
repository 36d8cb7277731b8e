//! InfluxDB line protocol: bytes in, borrowed points out.
//!
//! `no_std`, no dependency, and never an allocation. Three faces on one parser:
//!
//! - [`points`] is the comfortable one: an iterator of [`Point`]s, whose tags and fields are
//!   iterators again.
//! - [`split_points`] gives the same in a buffer of the caller's, so that the parts of a point are
//!   found once, counted and indexed: nearly as fast as the next.
//! - [`parse`] is the fast one: it calls the methods of a [`Sink`] for each part of a record, and a
//!   sink that knows a series already spares the parser its tags. [`Chunks`] does the same for a
//!   body that arrives in pieces.
//!
//! What one face accepts they all accept.
//!
//! And back: [`LineWriter`] writes lines into a buffer of the caller's.
//!
//! ```
//! # fn main() -> Result<(), arc_lp::Error> {
//! let input = b"pump,site=north rpm=1450i,load=0.75 1700000000000000000\n";
//! for point in arc_lp::points(input) {
//!     let point = point?;
//!     println!("{} {:?} {:?}", point.measurement(), point.fields(), point.timestamp());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Text stays as it is in the input until a caller asks for it without escapes ([`Text`]). A bad
//! record is an [`Error`] with a kind, a line and a byte offset, and parsing goes on after it. What
//! this crate never does: own bytes, know a unit of time, merge or refuse repeated keys. Those are
//! decisions of a store.
//!
//! # Features
//!
//! None is on by default, and none is needed for anything but what it says.
//!
//! - `alloc`: [`Text::to_cow`](Text#method.to_cow), and a `Vec` as the buffer of [`split_points`].
//! - `std`: finds out at run time whether the processor has AVX2. Without it, x86-64 uses SSE2
//!   (nine tenths as fast) or AVX2 if compiled for it, 64-bit ARM uses NEON, others use plain
//!   arithmetic.
//!
//! # The grammar, with its sources
//!
//! Sources: *ref* is the [line protocol reference] of InfluxDB; *I2* and *I3* are what InfluxDB 2.7
//! (and 1.8) and InfluxDB 3 Core do, *LP* what the official Go decoder (influxdata/line-protocol
//! 2.2) does, each observed by running it.
//!
//! 1. A record is `measurement[,tag=value]* SP+ field=value[,field=value]* [SP+ timestamp] SP*`.
//!    `SP` is the space alone. (*ref*, "Line protocol syntax"; several spaces: all three.)
//! 2. A record ends at LF, CR LF, CR at the end of input, or the end of input. Inside a quoted
//!    string LF and CR are data. A backslash before LF does not join lines. (*LP*)
//! 3. Spaces and tabs before a record are skipped; a line of nothing else is blank. A line whose
//!    first other byte is `#` is a comment up to the next LF, whatever it holds. (*ref*,
//!    "Comments"; tabs: *I2*, *I3*.)
//! 4. Names (measurement, tag key, tag value, field key) are not empty. Quotes mean nothing in
//!    them. `\` makes the next byte plain where it is `,`, space or `\`, and in all but the
//!    measurement `=`; before any other byte the backslash is data and stays. (*ref*, "Special
//!    characters"; `\\`: *I3*.)
//! 5. A measurement ends at an unescaped `,` or space (`=` is data). A tag key ends at `=`; `,` or
//!    space there is an error. A tag value ends at `,` or space (`=` is data). A field key ends at
//!    `=`; `,` or space there is an error. (*I2*, *LP*; `=` in a tag value: *I3*.)
//! 6. A tab in a name is an error, and so is NUL in a measurement (*I3*); other control bytes are
//!    data. Names and strings must be UTF-8 (*LP*); comments are not looked at.
//! 7. A string starts with `"` right after the field's `=` and ends at the next `"` that has no
//!    backslash escape. `\"` and `\\` are the only escapes; any other backslash is data. Any byte
//!    may stand inside. (*ref*, "Special characters"; *I2*, *I3*.)
//! 8. Other values run to `,`, space or the end of the record and are one of:
//!    `t T true True TRUE f F false False FALSE`; `-?[0-9]+i` in `i64`; `[0-9]+u` in `u64`;
//!    `-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?`, rounded to nearest even, an error where
//!    it would be infinite, 0 or denormal where it is tiny. (*ref*, "Data types and format"; *I2*.)
//! 9. A timestamp is `-?[0-9]+` in `i64`. (*ref*, "Unix timestamp"; *I3*, *LP*.)
//! 10. After `,` another tag or field must follow. (*I2*, *LP*)
//! 11. Repeated keys are all yielded, in order.
//! 12. After an error parsing goes on after the next LF at or after the place of the error. A
//!     string that is never closed takes the rest of the input with it: nothing else is safe. A
//!     string that is not UTF-8 is passed whole, so that its lines are not taken for records.
//!
//! # Switches
//!
//! A [`Dialect`] changes two of these rules, for every face alike ([`points_with`],
//! [`split_points_with`], [`parse_with`], [`Chunks::with_dialect`]):
//!
//! - [`Backslash::Keep`] takes `\\` out of the escapes of rule 4, as *I2* has it: in a name it is
//!   two bytes of data, `\\,` is a backslash and a comma that is data, and a name that ends in `\\`
//!   goes on after the comma, space or (but in a measurement) `=` after it. Strings are as ever.
//! - [`Utf8::Lossy`] lets names and strings be any bytes, but for the controls of rule 6.
//!   `Display`, [`Text::chars`], [`Text::unescape_into`] and `to_cow` then give U+FFFD for what is
//!   not UTF-8, as `String::from_utf8_lossy` does, [`Text::as_str`] gives nothing, and
//!   [`Text::raw`], comparing and hashing go by the bytes.
//!
//! # Where servers disagree
//!
//! | point | who does what | here |
//! | --- | --- | --- |
//! | `\\` in a name | one backslash: InfluxDB 3, VictoriaMetrics, QuestDB; two: InfluxDB 2, Telegraf, Go decoder | one, so every name can be written; two with [`Backslash::Keep`] |
//! | name ending in `\\` | error: InfluxDB 3; the second escapes the space: InfluxDB 2; a backslash: VictoriaMetrics, QuestDB | a backslash; as InfluxDB 2 with [`Backslash::Keep`] |
//! | `\=` in a measurement | both bytes: InfluxDB 3, Telegraf, Go decoder; `=`: InfluxDB 2, VictoriaMetrics | both bytes: `=` needs no escape there |
//! | `\n` in a string | a line feed: Go decoder; error: Telegraf; both bytes: InfluxDB 2 and 3 | both bytes: what the servers store |
//! | LF in a string | ends the line: VictoriaMetrics, QuestDB; data: the others | data: stack traces are written so |
//! | CR LF | error: InfluxDB 3; kept in strings: InfluxDB 2; ends the line: the others | ends the line |
//! | space after the fields, no timestamp | error: InfluxDB 3 | fine |
//! | `5.`, `.5`, `5.e2` | error: InfluxDB 3 | fine |
//! | `1e400` | infinity: InfluxDB 3, VictoriaMetrics; error: the others | error: it could not be written back |
//! | `+5`, NaN, Inf, `1_000`, `trUe` | taken by one or the other | error, as InfluxDB 2 and 3 |
//! | `=` in a tag value | error: InfluxDB 2, Telegraf, Go decoder; data: InfluxDB 3, VictoriaMetrics | data: base64 and URLs, and nothing is ambiguous |
//! | `,` in a tag or field key | part of the key: InfluxDB 3; error: the others | error: it is a lost value |
//! | `f=1,` and `f=1,,g=2` | the first field: InfluxDB 3, QuestDB; error: the others | error: a cut payload must be seen |
//! | junk after a string | stored: InfluxDB 2; error: the others | error |
//! | backslash before LF | joins the lines: InfluxDB 2 and 3; ends the line: the others | ends the line: lines can be cut without state |
//! | tab between parts | a separator: Telegraf; part of a name: InfluxDB 2; error: InfluxDB 3, Go decoder | error |
//! | not UTF-8 | the body refused: InfluxDB 3; the line: Go decoder; stored: InfluxDB 2 | the line: one bad device must not lose a batch; none with [`Utf8::Lossy`] |
//! | bad timestamp | the server's clock: some | error |
//! | line of an error | number of the record: InfluxDB 3; physical line: Go decoder | physical line on which the record starts |
//! | after an error | stops: VictoriaMetrics, Telegraf; goes on: the others | goes on |
//!
//! [line protocol reference]: https://docs.influxdata.com/influxdb3/core/reference/line-protocol/
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod block;
mod chunks;
mod cursor;
mod dialect;
mod error;
mod marks;
mod number;
mod point;
mod push;
mod record;
mod split;
mod text;
mod utf8;
mod value;
mod window;
mod writer;

pub use chunks::{Chunks, ResumableSink};
pub use dialect::{Backslash, Dialect, Utf8};
pub use error::{Error, ErrorKind};
pub use point::{Fields, Point, Points, Tags, points, points_with};
pub use push::{Series, Sink, Summary, parse, parse_with};
pub use split::{Scratch, SplitFields, SplitPoint, SplitPoints, SplitTags, Token, split_points, split_points_with};
pub use text::Text;
pub use value::{FieldValue, RawValue, ValueKind};
pub use writer::{Line, LineWriter, WriteError};

/// Runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
