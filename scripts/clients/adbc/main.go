// The ADBC driver in this process, loaded by ADBC's driver manager for Go: it writes rows, asks for them, and lists what there is.
//
// Usage: clients LIBRARY FOLDER
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/apache/arrow-adbc/go/adbc"
	"github.com/apache/arrow-adbc/go/adbc/drivermgr"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// pumps returns three rows of two pumps.
func pumps() arrow.RecordBatch {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "time", Type: arrow.FixedWidthTypes.Timestamp_ns},
		{Name: "id", Type: arrow.BinaryTypes.String},
		{Name: "rpm", Type: arrow.PrimitiveTypes.Int64},
	}, nil)
	rows := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	rows.Field(0).(*array.TimestampBuilder).AppendValues([]arrow.Timestamp{1, 1, 2}, nil)
	rows.Field(1).(*array.StringBuilder).AppendValues([]string{"7", "8", "7"}, nil)
	rows.Field(2).(*array.Int64Builder).AppendValues([]int64{1450, 1500, 1460}, nil)
	return rows.NewRecordBatch()
}

func ingest(ctx context.Context, connection adbc.Connection) {
	statement, err := connection.NewStatement()
	check(err)
	defer statement.Close()
	check(statement.SetOption(adbc.OptionKeyIngestTargetTable, "pump"))
	check(statement.SetOption(adbc.OptionKeyIngestMode, adbc.OptionValueIngestModeCreate))
	check(statement.SetOption("arc.tags", "id"))
	check(statement.Bind(ctx, pumps()))
	stored, err := statement.ExecuteUpdate(ctx)
	check(err)
	fmt.Println("stored", stored)
}

func ask(ctx context.Context, connection adbc.Connection, sql string) error {
	statement, err := connection.NewStatement()
	check(err)
	defer statement.Close()
	check(statement.SetSqlQuery(sql))
	rows, _, err := statement.ExecuteQuery(ctx)
	if err != nil {
		return err
	}
	defer rows.Release()
	for rows.Next() {
		batch := rows.RecordBatch()
		for row := range int(batch.NumRows()) {
			fmt.Println("row", batch.Column(0).ValueStr(row), batch.Column(1).ValueStr(row))
		}
	}
	return rows.Err()
}

func main() {
	ctx := context.Background()
	driver := drivermgr.Driver{}
	database, err := driver.NewDatabase(map[string]string{
		"driver": os.Args[1], "entrypoint": "AdbcDriverArcInit", adbc.OptionKeyURI: os.Args[2], "arc.database": "plant",
	})
	check(err)
	defer database.Close()
	connection, err := database.Open(ctx)
	check(err)
	defer connection.Close()
	ingest(ctx, connection)
	check(ask(ctx, connection, "SELECT id, max(rpm) FROM pump GROUP BY id ORDER BY id"))
	schema, err := connection.GetTableSchema(ctx, nil, nil, "pump")
	check(err)
	fmt.Println("column", schema.Field(1).Name, schema.Field(1).Type)
	fmt.Println("refused", ask(ctx, connection, "SELECT * FROM absent"))
}
