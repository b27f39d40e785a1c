// An ordinary session of arrow-go's client for Flight SQL:
//
//	session ADDRESS
//
// It creates, fills and reads the table go_flight, which must not exist.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const table = "go_flight"

func main() {
	address := os.Args[1]
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	client, err := flightsql.NewClient(address, nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(err)
	defer client.Close()

	ingested, err := client.ExecuteIngest(ctx, rows(), &flightsql.ExecuteIngestOpts{
		Table: table,
		TableDefinitionOptions: &flightsql.TableDefinitionOptions{
			IfNotExist: flightsql.TableDefinitionOptionsTableNotExistOptionCreate,
			IfExists:   flightsql.TableDefinitionOptionsTableExistsOptionFail,
		},
	})
	check(err)
	expect(ingested, int64(3))

	info, err := client.Execute(ctx, "SELECT name FROM "+table+" WHERE id >= 2 ORDER BY id")
	check(err)
	expect(texts(ctx, client, info), []string{"b", "c"})

	prepared, err := client.Prepare(ctx, "SELECT name FROM "+table+" WHERE id = ?")
	check(err)
	expect(prepared.ParameterSchema().NumFields(), 1)
	for id, name := range map[int64]string{1: "a", 3: "c"} {
		prepared.SetParameters(parameter(id))
		info, err = prepared.Execute(ctx)
		check(err)
		expect(texts(ctx, client, info), []string{name})
	}
	check(prepared.Close(ctx))

	pattern := "go_fl%"
	info, err = client.GetTables(ctx, &flightsql.GetTablesOpts{TableNameFilterPattern: &pattern, IncludeSchema: true})
	check(err)
	reader, err := client.DoGet(ctx, info.Endpoint[0].Ticket)
	check(err)
	expect(reader.Next(), true)
	expect(reader.RecordBatch().Column(2).(*array.String).Value(0), table)
	reader.Release()

	info, err = client.GetSqlInfo(ctx, []flightsql.SqlInfo{flightsql.SqlInfoFlightSqlServerName})
	check(err)
	reader, err = client.DoGet(ctx, info.Endpoint[0].Ticket)
	check(err)
	expect(reader.Next(), true)
	reader.Release()

	_, err = client.Execute(ctx, "SELECT * FROM no_such_table")
	if err == nil || !strings.Contains(err.Error(), "not found") {
		log.Fatalf("a missing table: %v", err)
	}
	cancels(client)
	path := &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{table}}
	info, err = client.Client.GetFlightInfo(ctx, path)
	check(err)
	expect(info.TotalRecords, int64(3))
	fmt.Println("ok")
}

// Ends a statement that would not end by itself.
func cancels(client *flightsql.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	info, err := client.Execute(ctx, "SELECT count(*) FROM range(100000) a, range(100000) b, range(100000) c")
	check(err)
	ended := make(chan error)
	go func() {
		reader, err := client.DoGet(ctx, info.Endpoint[0].Ticket)
		if err == nil {
			reader.Next()
			err = reader.Err()
		}
		ended <- err
	}()
	for {
		result, err := client.CancelFlightInfo(ctx, &flight.CancelFlightInfoRequest{Info: info})
		check(err)
		if result.Status == flight.CancelStatusCancelled {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "cancel") {
		log.Fatalf("a statement that was cancelled: %v", err)
	}
}

func rows() array.RecordReader {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer builder.Release()
	builder.Field(0).(*array.Int64Builder).AppendValues([]int64{1, 2, 3}, nil)
	builder.Field(1).(*array.StringBuilder).AppendValues([]string{"a", "b", "c"}, nil)
	reader, err := array.NewRecordReader(schema, []arrow.RecordBatch{builder.NewRecordBatch()})
	check(err)
	return reader
}

func parameter(id int64) arrow.RecordBatch {
	schema := arrow.NewSchema([]arrow.Field{{Name: "1", Type: arrow.PrimitiveTypes.Int64}}, nil)
	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer builder.Release()
	builder.Field(0).(*array.Int64Builder).Append(id)
	return builder.NewRecordBatch()
}

// Returns the texts of the first column of a flight.
func texts(ctx context.Context, client *flightsql.Client, info *flight.FlightInfo) []string {
	reader, err := client.DoGet(ctx, info.Endpoint[0].Ticket)
	check(err)
	defer reader.Release()
	var found []string
	for reader.Next() {
		column := reader.RecordBatch().Column(0).(*array.String)
		for i := range column.Len() {
			found = append(found, column.Value(i))
		}
	}
	check(reader.Err())
	return found
}

func expect(found, wanted any) {
	if fmt.Sprint(found) != fmt.Sprint(wanted) {
		log.Fatalf("found %v, and not %v", found, wanted)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
