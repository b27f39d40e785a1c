// An ordinary session of a gRPC client generated for Go:
//
//	session ADDRESS FOLDER
//
// FOLDER has the rows that are sent, as Arrow IPC streams: people.arrow (ids 1 to 3), more.arrow (10 and 11),
// merge.arrow (11 and 12) and other.arrow (other columns).
package main

import (
	"context"
	"io"
	"log"
	"os"
	"path/filepath"
	"time"

	pb "contract/lance/namespace/v1"

	"google.golang.org/genproto/googleapis/api/httpbody"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

var (
	namespace = []string{"go"}
	people    = []string{"go", "people"}
	address   = os.Args[1]
	folder    = os.Args[2]
)

func main() {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	run := &runner{ctx: ctx, client: pb.NewLanceNamespaceServiceClient(connection)}
	run.namespaces()
	run.tables()
	run.rows()
	run.queries()
	run.indices()
	run.columns()
	run.versions()
	run.endings()
	run.end("gRPC stubs for Go (protoc-gen-go-grpc)", grpc.Version)
}

type runner struct {
	session
	ctx    context.Context
	client pb.LanceNamespaceServiceClient
}

func body(file string) []byte {
	data, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		log.Fatal(err)
	}
	return data
}

// pieces cuts a body, so that uploads take several messages.
func pieces(data []byte) [][]byte {
	const size = 100
	var all [][]byte
	for start := 0; start < len(data); start += size {
		all = append(all, data[start:min(start+size, len(data))])
	}
	return all
}

func (r *runner) create(request *pb.CreateTableRequest, data []byte) (*pb.CreateTableResponse, error) {
	stream, err := r.client.CreateTable(r.ctx)
	if err != nil {
		return nil, err
	}
	for _, piece := range pieces(data) {
		request.Data = &httpbody.HttpBody{Data: piece}
		// A failed send says no more than io.EOF: the answer has the reason.
		if stream.Send(request) != nil {
			break
		}
		request = &pb.CreateTableRequest{}
	}
	return stream.CloseAndRecv()
}

func (r *runner) insert(request *pb.InsertIntoTableRequest, data []byte) (*pb.InsertIntoTableResponse, error) {
	stream, err := r.client.InsertIntoTable(r.ctx)
	if err != nil {
		return nil, err
	}
	for _, piece := range pieces(data) {
		request.Data = &httpbody.HttpBody{Data: piece}
		if stream.Send(request) != nil {
			break
		}
		request = &pb.InsertIntoTableRequest{}
	}
	return stream.CloseAndRecv()
}

func (r *runner) merge(request *pb.MergeInsertIntoTableRequest, data []byte) (*pb.MergeInsertIntoTableResponse, error) {
	stream, err := r.client.MergeInsertIntoTable(r.ctx)
	if err != nil {
		return nil, err
	}
	request.Data = &httpbody.HttpBody{Data: data}
	if err := stream.Send(request); err != nil && err != io.EOF {
		return nil, err
	}
	return stream.CloseAndRecv()
}

func (r *runner) query(request *pb.QueryTableRequest) ([]byte, error) {
	stream, err := r.client.QueryTable(r.ctx, request)
	if err != nil {
		return nil, err
	}
	var data []byte
	for {
		message, err := stream.Recv()
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
		data = append(data, message.GetData().GetData()...)
	}
}

// found makes a table of the result of a query, and counts its rows that meet a condition.
func (r *runner) found(request *pb.QueryTableRequest, predicate string) (int64, error) {
	data, err := r.query(request)
	if err != nil {
		return 0, err
	}
	id := []string{"go", "found"}
	mode := pb.CreateTableMode_CREATE_TABLE_MODE_OVERWRITE
	if _, err := r.create(&pb.CreateTableRequest{Id: id, Mode: &mode}, data); err != nil {
		return 0, err
	}
	answer, err := r.client.CountTableRows(r.ctx, &pb.CountTableRowsRequest{Id: id, Predicate: &predicate})
	return answer.GetCount(), err
}

func (r *runner) count(request *pb.CountTableRowsRequest) (int64, error) {
	answer, err := r.client.CountTableRows(r.ctx, request)
	return answer.GetCount(), err
}
