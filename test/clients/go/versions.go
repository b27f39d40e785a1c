package main

import pb "contract/lance/namespace/v1"

func (r *runner) columns() {
	double := "double"
	r.check("AlterTableAddColumns", func() error {
		expression := "id * 2"
		columns := []*pb.AddColumnsEntry{{Name: "twice", Expression: &expression}}
		return just(r.client.AlterTableAddColumns(r.ctx, &pb.AlterTableAddColumnsRequest{Id: people, NewColumns: columns}))
	})
	r.check("AlterTableAlterColumns", func() error {
		alterations := []*pb.AlterColumnsEntry{{Path: "twice", Rename: &double}}
		return just(r.client.AlterTableAlterColumns(r.ctx, &pb.AlterTableAlterColumnsRequest{Id: people, Alterations: alterations}))
	})
	r.check("UpdateTableSchemaMetadata", func() error {
		metadata := map[string]string{"made": "here"}
		answer, err := r.client.UpdateTableSchemaMetadata(r.ctx, &pb.UpdateTableSchemaMetadataRequest{Id: people, Metadata: metadata})
		return is(answer, err, func(a *pb.UpdateTableSchemaMetadataResponse) any { return a.GetMetadata() }, metadata)
	})
	r.check("AlterTableDropColumns", func() error {
		return just(r.client.AlterTableDropColumns(r.ctx, &pb.AlterTableDropColumnsRequest{Id: people, Columns: []string{double}}))
	})
	r.rejected("AlterTableDropColumns of none", 12, func() error {
		return just(r.client.AlterTableDropColumns(r.ctx, &pb.AlterTableDropColumnsRequest{Id: people, Columns: []string{double}}))
	})
}

func (r *runner) versions() {
	yes := true
	r.check("ListTableVersions", func() error {
		answer, err := r.client.ListTableVersions(r.ctx, &pb.ListTableVersionsRequest{Id: people, Descending: &yes})
		return is(answer, err, func(a *pb.ListTableVersionsResponse) any {
			versions := a.GetVersions()
			return len(versions) > 5 && versions[0].GetVersion() > versions[1].GetVersion()
		}, true)
	})
	r.check("CreateTableTag", func() error {
		return just(r.client.CreateTableTag(r.ctx, &pb.CreateTableTagRequest{Id: people, Tag: "first", Version: 1}))
	})
	r.check("UpdateTableTag", func() error {
		return just(r.client.UpdateTableTag(r.ctx, &pb.UpdateTableTagRequest{Id: people, Tag: "first", Version: 2}))
	})
	r.check("GetTableTagVersion", func() error {
		answer, err := r.client.GetTableTagVersion(r.ctx, &pb.GetTableTagVersionRequest{Id: people, Tag: "first"})
		return is(answer, err, func(a *pb.GetTableTagVersionResponse) any { return a.GetVersion() }, int64(2))
	})
	r.check("ListTableTags", func() error {
		answer, err := r.client.ListTableTags(r.ctx, &pb.ListTableTagsRequest{Id: people})
		return is(answer, err, func(a *pb.ListTableTagsResponse) any { return a.GetTags()["first"].GetVersion() }, int64(2))
	})
	r.check("DeleteTableTag", func() error {
		return just(r.client.DeleteTableTag(r.ctx, &pb.DeleteTableTagRequest{Id: people, Tag: "first"}))
	})
	side, first := "side", int64(1)
	r.check("CreateTableBranch", func() error {
		return just(r.client.CreateTableBranch(r.ctx, &pb.CreateTableBranchRequest{Id: people, Name: side, FromVersion: &first}))
	})
	r.check("InsertIntoTable on a branch", func() error {
		return just(r.insert(&pb.InsertIntoTableRequest{Id: people, Branch: &side}, body("more.arrow")))
	})
	r.check("CountTableRows on a branch", func() error {
		count, err := r.count(&pb.CountTableRowsRequest{Id: people, Branch: &side})
		return is(count, err, func(n int64) any { return n }, int64(5))
	})
	r.check("DeleteTableBranch", func() error {
		return just(r.client.DeleteTableBranch(r.ctx, &pb.DeleteTableBranchRequest{Id: people, Name: side}))
	})
	r.check("RestoreTable", func() error {
		return just(r.client.RestoreTable(r.ctx, &pb.RestoreTableRequest{Id: people, Version: first}))
	})
}
