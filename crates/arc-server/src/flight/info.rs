//! What the server says of itself: `GetSqlInfo` and `GetXdbcTypeInfo`.

use arrow::array::RecordBatch;
use arrow_flight::sql::{
    CommandGetSqlInfo, CommandGetXdbcTypeInfo, Nullable, Searchable, SqlInfo, SqlNullOrdering,
    SqlSupportedCaseSensitivity, SqlSupportedTransaction, XdbcDataType, XdbcDatetimeSubcode,
    metadata::{SqlInfoData, SqlInfoDataBuilder, XdbcTypeInfo, XdbcTypeInfoDataBuilder},
};

use crate::errors::Failure;

/// Version of the crate `arrow`, whose columns are sent.
const ARROW_VERSION: &str = "59";

pub(super) fn sql(asked: CommandGetSqlInfo) -> Result<RecordBatch, Failure> {
    let known = known().map_err(|_| Failure::bug())?;
    asked.into_builder(&known).build().map_err(|_| Failure::bug())
}

fn known() -> arrow_flight::error::Result<SqlInfoData> {
    let mut info = SqlInfoDataBuilder::new();
    info.append(SqlInfo::FlightSqlServerName, "Arc");
    info.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    info.append(SqlInfo::FlightSqlServerArrowVersion, ARROW_VERSION);
    info.append(SqlInfo::FlightSqlServerReadOnly, false);
    info.append(SqlInfo::FlightSqlServerSql, true);
    info.append(SqlInfo::FlightSqlServerSubstrait, false);
    info.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::None as i32);
    // A client cancels by leaving.
    info.append(SqlInfo::FlightSqlServerCancel, false);
    info.append(SqlInfo::FlightSqlServerBulkIngestion, true);
    info.append(SqlInfo::FlightSqlServerIngestTransactionsSupported, false);
    info.append(SqlInfo::FlightSqlServerStatementTimeout, 0);
    info.append(SqlInfo::FlightSqlServerTransactionTimeout, 0);
    info.append(SqlInfo::SqlDdlCatalog, false);
    info.append(SqlInfo::SqlDdlSchema, false);
    info.append(SqlInfo::SqlDdlTable, false);
    // Names are taken as written, for which there is no word.
    info.append(SqlInfo::SqlIdentifierCase, SqlSupportedCaseSensitivity::SqlCaseSensitivityUnknown as i32);
    info.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    info.append(SqlInfo::SqlAllTablesAreSelectable, true);
    info.append(SqlInfo::SqlNullOrdering, SqlNullOrdering::SqlNullsSortedHigh as i32);
    info.append(SqlInfo::SqlSupportsColumnAliasing, true);
    info.append(SqlInfo::SqlNullPlusNullIsNull, true);
    info.append(SqlInfo::SqlSupportsTableCorrelationNames, true);
    info.append(SqlInfo::SqlSupportsExpressionsInOrderBy, true);
    info.append(SqlInfo::SqlSupportsOrderByUnrelated, true);
    info.append(SqlInfo::SqlSupportsLikeEscapeClause, true);
    info.append(SqlInfo::SqlSchemaTerm, "database");
    info.append(SqlInfo::SqlCatalogTerm, "catalog");
    info.append(SqlInfo::SqlCatalogAtStart, true);
    info.append(SqlInfo::SqlCorrelatedSubqueriesSupported, true);
    info.append(SqlInfo::SqlSelectForUpdateSupported, false);
    info.append(SqlInfo::SqlStoredProceduresSupported, false);
    info.build()
}

pub(super) fn types(asked: &CommandGetXdbcTypeInfo) -> Result<RecordBatch, Failure> {
    let mut types = XdbcTypeInfoDataBuilder::new();
    for info in all_types() {
        types.append(info);
    }
    let types = types.build().map_err(|_| Failure::bug())?;
    types.record_batch(asked.data_type).map_err(|_| Failure::bug())
}

/// Returns the types that columns have, by the names that `CAST` knows.
fn all_types() -> Vec<XdbcTypeInfo> {
    let number = |name: &str, data_type, digits, unsigned| XdbcTypeInfo {
        column_size: Some(digits),
        unsigned_attribute: Some(unsigned),
        num_prec_radix: Some(10),
        ..of(name, data_type)
    };
    let quoted = |info: XdbcTypeInfo| XdbcTypeInfo {
        literal_prefix: Some("'".to_owned()),
        literal_suffix: Some("'".to_owned()),
        ..info
    };
    vec![
        number("BIGINT", XdbcDataType::XdbcBigint, 19, false),
        number("BIGINT UNSIGNED", XdbcDataType::XdbcBigint, 20, true),
        XdbcTypeInfo { num_prec_radix: Some(2), ..number("DOUBLE", XdbcDataType::XdbcDouble, 53, false) },
        of("BOOLEAN", XdbcDataType::XdbcBit),
        quoted(XdbcTypeInfo { case_sensitive: true, ..of("VARCHAR", XdbcDataType::XdbcVarchar) }),
        quoted(XdbcTypeInfo {
            minimum_scale: Some(9),
            maximum_scale: Some(9),
            sql_data_type: XdbcDataType::XdbcDatetime,
            datetime_subcode: Some(XdbcDatetimeSubcode::XdbcSubcodeTimestamp),
            ..of("TIMESTAMP", XdbcDataType::XdbcTimestamp)
        }),
    ]
}

fn of(name: &str, data_type: XdbcDataType) -> XdbcTypeInfo {
    XdbcTypeInfo {
        type_name: name.to_owned(),
        data_type,
        nullable: Nullable::NullabilityNullable,
        searchable: Searchable::Full,
        auto_increment: Some(false),
        local_type_name: Some(name.to_owned()),
        sql_data_type: data_type,
        ..XdbcTypeInfo::default()
    }
}
