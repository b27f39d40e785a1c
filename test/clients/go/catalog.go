package main

import (
	"path"

	pb "contract/lance/namespace/v1"
)

func (r *runner) namespaces() {
	owner := map[string]string{"owner": "ada"}
	r.check("CreateNamespace", func() error {
		answer, err := r.client.CreateNamespace(r.ctx, &pb.CreateNamespaceRequest{Id: namespace, Properties: owner})
		return is(answer, err, func(a *pb.CreateNamespaceResponse) any { return a.GetProperties() }, owner)
	})
	r.rejected("CreateNamespace that is there", 2, func() error {
		return just(r.client.CreateNamespace(r.ctx, &pb.CreateNamespaceRequest{Id: namespace}))
	})
	r.check("CreateNamespace with EXIST_OK", func() error {
		mode := pb.CreateNamespaceMode_CREATE_NAMESPACE_MODE_EXIST_OK
		return just(r.client.CreateNamespace(r.ctx, &pb.CreateNamespaceRequest{Id: namespace, Mode: &mode}))
	})
	r.check("CreateNamespace below", func() error {
		return just(r.client.CreateNamespace(r.ctx, &pb.CreateNamespaceRequest{Id: []string{"go", "inner"}}))
	})
	r.check("DescribeNamespace", func() error {
		answer, err := r.client.DescribeNamespace(r.ctx, &pb.DescribeNamespaceRequest{Id: namespace})
		return is(answer, err, func(a *pb.DescribeNamespaceResponse) any { return a.GetProperties() }, owner)
	})
	r.check("ListNamespaces", func() error {
		answer, err := r.client.ListNamespaces(r.ctx, &pb.ListNamespacesRequest{Id: namespace})
		return is(answer, err, func(a *pb.ListNamespacesResponse) any { return a.GetNamespaces() }, []string{"inner"})
	})
	r.rejected("NamespaceExists of none", 1, func() error {
		return just(r.client.NamespaceExists(r.ctx, &pb.NamespaceExistsRequest{Id: []string{"nowhere"}}))
	})
}

func (r *runner) tables() {
	r.check("CreateTable", func() error {
		answer, err := r.create(&pb.CreateTableRequest{Id: people}, body("people.arrow"))
		return is(answer, err, func(a *pb.CreateTableResponse) any { return a.GetVersion() }, int64(1))
	})
	r.rejected("CreateTable that is there", 5, func() error {
		return just(r.create(&pb.CreateTableRequest{Id: people}, body("people.arrow")))
	})
	r.rejected("CreateTable of no Arrow", 13, func() error {
		return just(r.create(&pb.CreateTableRequest{Id: []string{"go", "broken"}}, []byte("no arrow at all")))
	})
	declared := []string{"go", "declared"}
	r.check("DeclareTable", func() error {
		return just(r.client.DeclareTable(r.ctx, &pb.DeclareTableRequest{Id: declared}))
	})
	r.check("ListTables", func() error {
		answer, err := r.client.ListTables(r.ctx, &pb.ListTablesRequest{Id: namespace})
		return is(answer, err, func(a *pb.ListTablesResponse) any { return a.GetTables() }, []string{"declared", "people"})
	})
	r.check("TableExists", func() error {
		return just(r.client.TableExists(r.ctx, &pb.TableExistsRequest{Id: people}))
	})
	yes := true
	r.check("DescribeTable", func() error {
		answer, err := r.client.DescribeTable(r.ctx, &pb.DescribeTableRequest{Id: people, LoadDetailedMetadata: &yes})
		return is(answer, err, func(a *pb.DescribeTableResponse) any {
			names := []string{}
			for _, field := range a.GetSchema().GetFields() {
				names = append(names, field.GetName())
			}
			return names
		}, []string{"id", "name", "vector"})
	})
	r.check("DescribeTable that is declared only", func() error {
		answer, err := r.client.DescribeTable(r.ctx, &pb.DescribeTableRequest{Id: declared, CheckDeclared: &yes})
		return is(answer, err, func(a *pb.DescribeTableResponse) any { return a.GetIsOnlyDeclared() }, true)
	})
	r.rejected("DescribeTable of none", 4, func() error {
		return just(r.client.DescribeTable(r.ctx, &pb.DescribeTableRequest{Id: []string{"go", "missing"}}))
	})
}

func (r *runner) endings() {
	folk, again := []string{"go", "folk"}, []string{"go", "again"}
	r.check("RenameTable", func() error {
		return just(r.client.RenameTable(r.ctx, &pb.RenameTableRequest{Id: people, NewTableName: "folk"}))
	})
	r.check("CountTableRows of the new name", func() error {
		count, err := r.count(&pb.CountTableRowsRequest{Id: folk})
		return is(count, err, func(n int64) any { return n }, int64(3))
	})
	var location string
	r.check("DeregisterTable", func() error {
		answer, err := r.client.DeregisterTable(r.ctx, &pb.DeregisterTableRequest{Id: folk})
		location = path.Base(answer.GetLocation())
		return err
	})
	r.check("RegisterTable", func() error {
		return just(r.client.RegisterTable(r.ctx, &pb.RegisterTableRequest{Id: again, Location: location}))
	})
	r.check("DropTable", func() error {
		return just(r.client.DropTable(r.ctx, &pb.DropTableRequest{Id: again}))
	})
	r.rejected("DropTable of none", 4, func() error {
		return just(r.client.DropTable(r.ctx, &pb.DropTableRequest{Id: again}))
	})
	r.rejected("DropNamespace that is not empty", 3, func() error {
		return just(r.client.DropNamespace(r.ctx, &pb.DropNamespaceRequest{Id: namespace}))
	})
	r.check("DropNamespace with everything", func() error {
		behavior := pb.DropNamespaceBehavior_DROP_NAMESPACE_BEHAVIOR_CASCADE
		return just(r.client.DropNamespace(r.ctx, &pb.DropNamespaceRequest{Id: namespace, Behavior: &behavior}))
	})
}
