//! Names of databases, tables and data files as paths.
//!
//! Owns the encoding (docs/format.md, "Names"). A name never becomes a path as it is.

use std::fmt::Write;

use ulid::Ulid;

use super::{DATA_DIR, PartitionDay, TableSchema};

/// Longest encoded name in bytes. Leaves room for suffixes below the 143 bytes that the tightest
/// common file system (eCryptfs) allows, and for the whole path below the 260 characters of
/// Windows.
const MAX_BYTES: usize = 120;

/// `%h` and the 32 digits of the hash. No escape begins with `%h`, for `h` is no digit.
const HASH_SUFFIX_BYTES: usize = 34;

/// Names that Windows gives to devices, with any extension.
const RESERVED: [&str; 22] = [
    "con", "prn", "aux", "nul", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9", "lpt1", "lpt2",
    "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
];

/// Encodes a database or table name into one path component that file systems, object stores and
/// globs take as it is.
///
/// ASCII letters and digits, `-`, `_` and `.` stay as they are. Every other byte of the name's
/// UTF-8 becomes `%` and two upper-case hexadecimal digits, and so do a leading `_` or `.` (hidden
/// from readers), a trailing `.` and the first letter of a name that Windows reserves. What is
/// longer than 120 bytes then is cut after a whole character, followed by `%h` and the name's
/// 128-bit FNV-1a hash. Different names have different encodings (cut ones as surely as the hash
/// tells them apart); names that differ only in case are different, so on a file system that
/// ignores case they share a folder.
///
/// ```
/// use arc_core::datafile::encode_name;
///
/// assert_eq!(encode_name("pump-7"), "pump-7");
/// assert_eq!(encode_name("pump house/7"), "pump%20house%2F7");
/// ```
#[must_use]
pub fn encode_name(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    let mut cut = 0;
    let reserved = is_reserved(name);
    for (index, byte) in name.bytes().enumerate() {
        let at_edge = index == 0 || index + 1 == name.len();
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' if index == 0 && reserved => escape(byte, &mut encoded),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' => encoded.push(char::from(byte)),
            b'_' if index > 0 => encoded.push('_'),
            b'.' if !at_edge => encoded.push('.'),
            _ => escape(byte, &mut encoded),
        }
        if encoded.len() <= MAX_BYTES - HASH_SUFFIX_BYTES && name.is_char_boundary(index + 1) {
            cut = encoded.len();
        }
    }
    if encoded.is_empty() {
        // Not a name the engine takes, but an empty component would move the file up one folder.
        encoded.push('%');
    } else if encoded.len() > MAX_BYTES {
        encoded.truncate(cut);
        push_formatted(&mut encoded, format_args!("%h{:032x}", fnv1a_128(name.as_bytes())));
    }
    encoded
}

/// Returns the path of a new data file below the data directory:
/// `data/<db>/<table>/day=2026-01-31/<ulid>.parquet`, without `day=` if the table has a column of that name.
pub(crate) fn data_file_path(schema: &TableSchema, day: PartitionDay, id: Ulid) -> String {
    let [named, bare] = day_folders(schema, day);
    // Other programs take `day=` for a column, instead of the one in the file, and some know no case.
    let has_day = schema.columns.iter().any(|column| column.name.eq_ignore_ascii_case("day"));
    format!("{}/{}.parquet", if has_day { bare } else { named }, id.to_string())
}

/// Returns the folders below the data directory that a table's data files of a day may be in.
pub(crate) fn day_folders(schema: &TableSchema, day: PartitionDay) -> [String; 2] {
    let folder = table_folder(&schema.database, &schema.table);
    [format!("{folder}/day={day}"), format!("{folder}/{day}")]
}

/// Returns the folder of a table's data files below the data directory: `data/<db>/<table>`.
pub(crate) fn table_folder(database: &str, table: &str) -> String {
    format!("{DATA_DIR}/{}/{}", encode_name(database), encode_name(table))
}

fn is_reserved(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(stem))
}

fn escape(byte: u8, encoded: &mut String) {
    push_formatted(encoded, format_args!("%{byte:02X}"));
}

fn push_formatted(encoded: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = encoded.write_fmt(arguments);
}

/// FNV-1a with 128 bits: the folder of a name must never change, so the hash is one that is written
/// down.
fn fnv1a_128(bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Column, ColumnKind};

    #[test]
    fn names_become_safe_components() {
        let cases = [
            ("cpu", "cpu"),
            ("CPU", "CPU"),
            ("disk-io_2.total", "disk-io_2.total"),
            ("", "%"),
            (".", "%2E"),
            ("..", "%2E%2E"),
            ("...", "%2E.%2E"),
            (".hidden", "%2Ehidden"),
            ("_internal", "%5Finternal"),
            ("end.", "end%2E"),
            ("a/b", "a%2Fb"),
            ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"),
            ("a\\b", "a%5Cb"),
            ("a\0b", "a%00b"),
            ("two words", "two%20words"),
            ("100%", "100%25"),
            ("%2F", "%252F"),
            ("a=b", "a%3Db"),
            ("*?[x]{y}", "%2A%3F%5Bx%5D%7By%7D"),
            ("c:\"<>|#", "c%3A%22%3C%3E%7C%23"),
            ("~user", "%7Euser"),
            ("tab\tnew\n", "tab%09new%0A"),
            ("\u{7f}", "%7F"),
            ("é", "%C3%A9"),
            ("🌡", "%F0%9F%8C%A1"),
            ("con", "%63on"),
            ("NUL", "%4EUL"),
            ("nul.txt", "%6Eul.txt"),
            ("Com1", "%43om1"),
            ("com10", "com10"),
            ("console", "console"),
        ];
        for (name, encoded) in cases {
            assert_eq!(encode_name(name), encoded, "{name:?}");
        }
    }

    #[test]
    fn long_names_are_cut_after_a_whole_character_and_stay_unique() {
        let exact = "x".repeat(120);
        assert_eq!(encode_name(&exact), exact);
        for stem in ["x".repeat(300), "é".repeat(150), "🌡".repeat(75), format!("{}{}", "x".repeat(84), "🌡".repeat(50))]
        {
            let (one, two) = (encode_name(&format!("{stem}1")), encode_name(&format!("{stem}2")));
            assert_ne!(one, two);
            let (kept, hash) = one.rsplit_once("%h").unwrap();
            assert!(one.len() <= 120, "{one}");
            assert!(stem.starts_with(&decode(kept)), "{one}");
            assert_eq!(hash.len(), 32, "{one}");
        }
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(fnv1a_128(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fnv1a_128(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }

    fn table(database: &str, table: &str, columns: &[&str]) -> TableSchema {
        let (database, table, data_type) = (database.into(), table.into(), DataType::Int64);
        let field =
            |name: &&str| Column { name: (*name).into(), kind: ColumnKind::Field, data_type: data_type.clone() };
        TableSchema { database, table, has_primary_key: true, columns: columns.iter().map(field).collect() }
    }

    #[test]
    fn the_path_of_a_file_has_a_folder_for_each_part() {
        let day = PartitionDay::from_time_ns(1_769_817_600_000_000_000);
        for (columns, folder) in [(&["days"][..], "day=2026-01-31"), (&["v", "Day"], "2026-01-31")] {
            let path = data_file_path(&table("my db", "a/b", columns), day, Ulid::nil());
            assert_eq!(path, format!("data/my%20db/a%2Fb/{folder}/00000000000000000000000000.parquet"));
        }
    }

    #[cfg(feature = "query")]
    #[test]
    fn object_stores_take_the_paths_as_they_are() {
        for name in ["a/b", "..", "100%", "é🌡", "_x", "~", "con"] {
            let path = data_file_path(&table(name, name, &[]), PartitionDay::from_time_ns(0), Ulid::nil());
            assert_eq!(object_store::path::Path::parse(&path).unwrap().as_ref(), path);
        }
    }

    /// Undoes the encoding of a name that was not cut.
    fn decode(encoded: &str) -> String {
        let mut bytes = Vec::new();
        let mut rest = encoded;
        while let Some(first) = rest.bytes().next() {
            let (byte, len) =
                if first == b'%' { (u8::from_str_radix(&rest[1..3], 16).unwrap(), 3) } else { (first, 1) };
            bytes.push(byte);
            rest = &rest[len..];
        }
        String::from_utf8(bytes).unwrap()
    }

    proptest! {
        #[test]
        fn encodings_are_safe_and_short(name in any::<String>()) {
            let encoded = encode_name(&name);
            prop_assert!((1..=120).contains(&encoded.len()));
            prop_assert!(encoded.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.%".contains(&b)));
            prop_assert!(!encoded.starts_with(['.', '_']) && !encoded.ends_with('.'));
        }

        #[test]
        fn short_names_come_back(name in "\\PC{1,13}") {
            if name.len() <= 40 {
                prop_assert_eq!(decode(&encode_name(&name)), name);
            }
        }

        #[test]
        fn different_names_have_different_encodings(
            stem in ".{0,130}", one in "[a%h\u{e9}0-9.]{0,40}", two in "[a%h\u{e9}0-9.]{0,40}",
        ) {
            let (one, two) = (format!("{stem}{one}"), format!("{stem}{two}"));
            prop_assert_eq!(one == two, encode_name(&one) == encode_name(&two));
        }

        #[test]
        fn an_encoded_name_is_no_other_names_encoding(name in any::<String>()) {
            let encoded = encode_name(&name);
            if encoded != name {
                prop_assert_ne!(encode_name(&encoded), encoded);
            }
        }
    }
}
