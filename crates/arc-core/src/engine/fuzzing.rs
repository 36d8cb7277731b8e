//! Bodies of writes as the engine decodes them. What is taken becomes a frame, which proves itself.

use std::{
    path::Path,
    sync::{Arc, LazyLock},
};

use arrow::datatypes::DataType;
use bytes::Bytes;

use super::{
    Engine,
    frame::{FrameKind, WriteMeta},
    write::{WriteRequest, decode_logged},
};
use crate::{
    WriteOptions,
    model::{Column, ColumnKind, TableSchema, tag_type},
    registry::{Database, Table},
    vfs::CrashFs,
};

/// Decodes, and stores nothing.
static ENGINE: LazyLock<Option<Engine>> =
    LazyLock::new(|| Engine::builder(Path::new("/data")).vfs(Arc::new(CrashFs::new())).open().ok());

/// A body of MessagePack.
pub fn message_pack(bytes: &[u8]) {
    write(&request(FrameKind::MessagePack, bytes));
}

/// A body of record batches, for a table that is there and for a new one.
pub fn arrow_stream(bytes: &[u8]) {
    for table in ["keyed", "new"] {
        let request = request(FrameKind::Arrow, bytes);
        let meta = WriteMeta { table: Some(table.to_owned()), ..request.meta };
        write(&WriteRequest { meta, ..request });
    }
}

/// The body of a frame of rows, which is written again.
pub fn logged_rows(bytes: &[u8]) {
    let request = request(FrameKind::Rows, bytes);
    let (Some(engine), Ok(mut staged)) = (ENGINE.as_ref(), decode_logged(&request, &database())) else { return };
    staged.tables.retain(|table| !table.is_empty());
    // As long as any, so that its rows are logged as such.
    let request = WriteRequest { kind: FrameKind::LineProtocol, body: Bytes::from(vec![b'#'; 64 << 10]), ..request };
    let frame = engine.writer().and_then(|shared| shared.write_frame(&request, &staged, Vec::new()));
    assert!(staged.points() == 0 || frame.is_ok(), "rows of a frame are none: {frame:?}");
}

fn request(kind: FrameKind, bytes: &[u8]) -> WriteRequest {
    let meta = WriteMeta::new("d", None, 5, &WriteOptions::new());
    WriteRequest { kind, body: Bytes::copy_from_slice(bytes), meta }
}

/// Returns a database with a table of each kind.
fn database() -> Arc<Database> {
    let database = Arc::new(Database::new("d", 0, true));
    for (name, has_primary_key) in [("keyed", true), ("list", false)] {
        let types = [DataType::Float64, DataType::Int64, DataType::UInt64, DataType::Boolean, DataType::Utf8];
        let fields = ["f", "i", "u", "b", "s"].into_iter().zip(types);
        let fields = fields.map(|(name, data_type)| Column { name: name.into(), kind: ColumnKind::Field, data_type });
        let tag = has_primary_key.then(|| Column { name: "host".into(), kind: ColumnKind::Tag, data_type: tag_type() });
        let columns = tag.into_iter().chain(fields).collect();
        database.add(Arc::new(Table::new(TableSchema {
            database: "d".into(),
            table: name.into(),
            has_primary_key,
            columns,
        })));
    }
    database
}

fn write(request: &WriteRequest) {
    let Some(engine) = ENGINE.as_ref() else { return };
    let Ok(mut staged) = engine.writer().and_then(|shared| shared.decode(request, &database())) else { return };
    staged.tables.retain(|table| !table.is_empty());
    let rejected = std::mem::take(&mut staged.rejections).numbers;
    if staged.points() > 0 {
        let frame = engine.writer().and_then(|shared| shared.write_frame(request, &staged, rejected));
        assert!(frame.is_ok(), "a write that is taken cannot be logged: {frame:?}");
    }
}
