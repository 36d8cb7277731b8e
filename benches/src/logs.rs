//! Wide, sparse log rows as record batches: the shape of `benches/gen_otel_logs.py`, made without
//! Python.
//!
//! Forty columns of a flattened OpenTelemetry stream: four core columns, twelve of the resource,
//! two of the scope, and twenty-two attributes that come and go in groups. The values are others
//! than the script's, their distribution is the same: 440 bytes a row in Arrow, 23 values of which
//! are present.

use std::{fmt::Write as _, sync::Arc};

use arrow::{
    array::{ArrayRef, Int64Array, RecordBatch, StringArray, StringBuilder},
    datatypes::{DataType, Field, Schema, SchemaRef},
    error::ArrowError,
};

use crate::random::Random;

/// Rows of a batch.
pub const BATCH_ROWS: usize = 10_000;
const START_MS: i64 = 1_735_689_600_000;

/// What a column of texts is made of.
#[derive(Clone, Copy)]
enum Texts {
    /// One of these.
    Of(&'static [&'static str]),
    /// Something with numbers below these in place of the `#`.
    With(&'static str, &'static [u64]),
    /// A random id of 36 characters.
    Id,
}

use Texts::{Id, Of, With};

const RESOURCE: [(&str, Texts); 14] = [
    ("resource_service_name", Of(&SERVICES)),
    ("resource_service_namespace", Of(&["production"])),
    ("resource_service_version", With("v1.#.#", &[10, 20])),
    ("resource_host_name", With("ip-10-#-#-#", &[256, 256, 256])),
    ("resource_host_id", Id),
    ("resource_cloud_provider", Of(&["aws"])),
    ("resource_cloud_region", Of(&["us-east-1", "us-west-2", "eu-west-1", "ap-southeast-1"])),
    ("resource_cloud_zone", Of(&["a", "b", "c"])),
    ("resource_k8s_cluster_name", Of(&["main-cluster-01"])),
    ("resource_k8s_namespace_name", Of(&["backend", "frontend", "jobs", "monitoring"])),
    ("resource_k8s_pod_name", With("pod-edge-proxy-#", &[50])),
    ("resource_k8s_container_name", Of(&["app"])),
    ("scope_name", Of(&["example.org/telemetry/collector"])),
    ("scope_version", Of(&["1.0.0"])),
];

const SERVICES: [&str; 5] = ["edge-proxy", "auth-server", "user-store", "billing-server", "notification-relay"];

const MESSAGES: [&str; 10] = [
    "Order accepted by backend",
    "Row batch written",
    "Key absent from cache",
    "Sign-in was accepted",
    "Call received at gateway",
    "Worker began a task",
    "Hook sent to endpoint",
    "Blob stored",
    "Mail sent",
    "Charge completed",
];

/// Columns that are present together, in so many of 100 rows.
const ATTRIBUTES: [(u64, &[(&str, Texts)]); 7] = [
    (
        30,
        &[
            ("attr_http_method", Of(&["GET", "POST", "PUT", "DELETE", "PATCH"])),
            ("attr_http_status_code", Of(&["200", "201", "204", "400", "404", "500", "502"])),
            ("attr_http_url", With("/api/v1/users/#", &[10_000])),
            (
                "attr_http_user_agent",
                Of(&[
                    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML)",
                    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) AppleWebKit/605",
                    "curl/8.5.0",
                    "okhttp-client/4.9.1",
                ]),
            ),
        ],
    ),
    (
        20,
        &[
            ("attr_db_system", Of(&["postgresql"])),
            ("attr_db_name", Of(&["users_db", "orders_db", "stock_db"])),
            ("attr_db_operation", Of(&["SELECT", "INSERT", "UPDATE", "DELETE"])),
            ("attr_db_query_duration_ms", With("#", &[5_000])),
        ],
    ),
    (
        15,
        &[
            ("attr_error", Of(&["true"])),
            ("attr_error_type", Of(&["InvalidInput", "StorageError", "NetworkError", "TimeoutError"])),
            (
                "attr_error_message",
                Of(&[
                    "Peer closed early",
                    "Parameter out of range",
                    "Unique constraint was broken",
                    "No such resource",
                ]),
            ),
            (
                "attr_error_stack",
                Of(&["in handle_call (main.rs:123)\nin route (router.rs:45)\nin serve (server.rs:89)\n"]),
            ),
        ],
    ),
    (25, &[("attr_user_id", With("user_#", &[100_000])), ("attr_session_id", Id), ("attr_request_id", Id)]),
    (
        40,
        &[
            ("attr_duration_ms", With("#", &[10_000])),
            ("attr_bytes_sent", With("#", &[1_000_000])),
            ("attr_bytes_received", With("#", &[1_000_000])),
        ],
    ),
    (
        5,
        &[
            (
                "attr_cache_hit",
                Of(&["true", "true", "true", "true", "true", "true", "true", "false", "false", "false"]),
            ),
            ("attr_cache_key", With("cache:user:#:profile", &[10_000])),
        ],
    ),
    (
        5,
        &[
            ("attr_queue_name", Of(&["mail-queue", "hook-queue", "report-queue"])),
            ("attr_queue_size", With("#", &[10_000])),
        ],
    ),
];

/// Returns the columns.
#[must_use]
pub fn schema() -> SchemaRef {
    let core = [
        ("timestamp", DataType::Int64),
        ("message", DataType::Utf8),
        ("level", DataType::Utf8),
        ("fingerprint", DataType::Int64),
    ];
    let texts = RESOURCE.iter().chain(ATTRIBUTES.iter().flat_map(|(_, columns)| columns.iter()));
    let fields = core.into_iter().chain(texts.map(|(name, _)| (*name, DataType::Utf8)));
    Arc::new(Schema::new(fields.map(|(name, data_type)| Field::new(name, data_type, true)).collect::<Vec<_>>()))
}

/// Returns so many rows, the same ones for one seed.
///
/// # Errors
///
/// Arrow's, which would be a mistake here.
pub fn batches(rows: usize, seed: u64) -> Result<Vec<RecordBatch>, ArrowError> {
    let starts = (0..rows).step_by(BATCH_ROWS);
    starts.map(|start| batch(start, BATCH_ROWS.min(rows - start), &mut Random::part(seed, start as u64))).collect()
}

fn batch(start: usize, rows: usize, random: &mut Random) -> Result<RecordBatch, ArrowError> {
    let time = (start as i64..).map(|row| START_MS + row * 1000);
    let level = |random: &mut Random| match random.below(100) {
        0..60 => "INFO",
        60..80 => "WARN",
        80..90 => "ERROR",
        _ => "DEBUG",
    };
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(time.take(rows))),
        texts(Of(&MESSAGES), &vec![true; rows], random),
        Arc::new(StringArray::from_iter_values((0..rows).map(|_| level(random)))),
        Arc::new(Int64Array::from_iter_values((0..rows).map(|_| (random.next_u64() >> 1).cast_signed()))),
    ];
    columns.extend(RESOURCE.iter().map(|(_, of)| texts(*of, &vec![true; rows], random)));
    for (share, group) in ATTRIBUTES {
        let present: Vec<bool> = (0..rows).map(|_| random.below(100) < share).collect();
        columns.extend(group.iter().map(|(_, of)| texts(*of, &present, random)));
    }
    RecordBatch::try_new(schema(), columns)
}

fn texts(of: Texts, present: &[bool], random: &mut Random) -> ArrayRef {
    let mut builder = StringBuilder::new();
    let mut text = String::new();
    for present in present {
        if !present {
            builder.append_null();
            continue;
        }
        text.clear();
        push_text(of, random, &mut text);
        builder.append_value(&text);
    }
    Arc::new(builder.finish())
}

fn push_text(of: Texts, random: &mut Random, text: &mut String) {
    // Writing to a text does not fail.
    match of {
        Of(values) => text.push_str(random.pick(values)),
        With(pattern, limits) => {
            let mut limits = limits.iter();
            for part in pattern.split_inclusive('#') {
                text.push_str(part.trim_end_matches('#'));
                if part.ends_with('#') {
                    let _ = write!(text, "{}", random.below(limits.next().copied().unwrap_or(1)));
                }
            }
        }
        Id => {
            let (a, b) = (random.next_u64(), random.next_u64());
            let _ = write!(
                text,
                "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                a >> 32,
                a >> 16 & 0xffff,
                a & 0xffff,
                b >> 48,
                b & 0xffff_ffff_ffff
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Array;

    use super::*;

    #[test]
    fn rows_have_the_shape_of_the_script() {
        let batches = batches(25_000, 1).unwrap();
        let rows = arrow::compute::concat_batches(&schema(), &batches).unwrap();
        assert_eq!((rows.num_rows(), rows.num_columns(), batches.len()), (25_000, 40, 3));
        assert_eq!(super::batches(25_000, 1).unwrap(), batches);
        let present = |name: &str| 1.0 - rows.column_by_name(name).unwrap().null_count() as f64 / 25_000.0;
        for (name, share) in [("resource_host_id", 1.0), ("attr_http_url", 0.3), ("attr_queue_size", 0.05)] {
            assert!((present(name) - share).abs() < 0.02, "{name}: {}", present(name));
        }
    }
}
