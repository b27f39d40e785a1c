package main

import (
	"slices"
	"strings"

	pb "contract/lance/namespace/v1"
)

func (r *runner) rows() {
	r.check("InsertIntoTable", func() error {
		answer, err := r.insert(&pb.InsertIntoTableRequest{Id: people}, body("more.arrow"))
		return is(answer, err, func(a *pb.InsertIntoTableResponse) any { return a.GetVersion() }, int64(2))
	})
	r.rejected("InsertIntoTable of other columns", 20, func() error {
		return just(r.insert(&pb.InsertIntoTableRequest{Id: people}, body("other.arrow")))
	})
	first, none, late, nonsense := int64(1), int64(99), "id >= 10", "id >"
	r.check("CountTableRows by a predicate", func() error {
		count, err := r.count(&pb.CountTableRowsRequest{Id: people, Predicate: &late})
		return is(count, err, func(n int64) any { return n }, int64(2))
	})
	r.check("CountTableRows of a version", func() error {
		count, err := r.count(&pb.CountTableRowsRequest{Id: people, Version: &first})
		return is(count, err, func(n int64) any { return n }, int64(3))
	})
	r.rejected("CountTableRows of no version", 11, func() error {
		return just(r.count(&pb.CountTableRowsRequest{Id: people, Version: &none}))
	})
	r.rejected("CountTableRows by nonsense", 13, func() error {
		return just(r.count(&pb.CountTableRowsRequest{Id: people, Predicate: &nonsense}))
	})
	yes := true
	r.check("MergeInsertIntoTable", func() error {
		request := &pb.MergeInsertIntoTableRequest{Id: people, On: []string{"id"}, WhenMatchedUpdateAll: &yes, WhenNotMatchedInsertAll: &yes}
		answer, err := r.merge(request, body("merge.arrow"))
		return is(answer, err, func(a *pb.MergeInsertIntoTableResponse) any {
			return []int64{a.GetNumUpdatedRows(), a.GetNumInsertedRows()}
		}, []int64{1, 1})
	})
	r.check("UpdateTable", func() error {
		one := "id = 1"
		updates := []*pb.ColumnUpdate{{Column: "name", Expression: "'Ada'"}}
		answer, err := r.client.UpdateTable(r.ctx, &pb.UpdateTableRequest{Id: people, Predicate: &one, Updates: updates})
		return is(answer, err, func(a *pb.UpdateTableResponse) any { return a.GetUpdatedRows() }, int64(1))
	})
	r.check("DeleteFromTable", func() error {
		answer, err := r.client.DeleteFromTable(r.ctx, &pb.DeleteFromTableRequest{Id: people, Predicate: "id = 12"})
		return is(answer, err, func(a *pb.DeleteFromTableResponse) any { return a.GetVersion() }, int64(5))
	})
	r.check("GetTableStats", func() error {
		answer, err := r.client.GetTableStats(r.ctx, &pb.GetTableStatsRequest{Id: people})
		return is(answer, err, func(a *pb.GetTableStatsResponse) any { return a.GetNumRows() }, int64(5))
	})
}

func (r *runner) queries() {
	one, ten, late := int64(1), int64(10), "id >= 10"
	number := func(n int64) any { return n }
	r.check("QueryTable for the nearest", func() error {
		near := &pb.QueryVector{SingleVector: []float32{1.1, 0}}
		count, err := r.found(&pb.QueryTableRequest{Id: people, Vector: near, K: &one}, "id = 1 AND name = 'Ada'")
		return is(count, err, number, int64(1))
	})
	r.check("QueryTable by a filter", func() error {
		count, err := r.found(&pb.QueryTableRequest{Id: people, Filter: &late, K: &ten}, "id IN (10, 11)")
		return is(count, err, number, int64(2))
	})
	r.check("QueryTable of a version", func() error {
		count, err := r.found(&pb.QueryTableRequest{Id: people, Version: &one}, "id < 4")
		return is(count, err, number, int64(3))
	})
	r.check("ExplainTableQueryPlan", func() error {
		query := &pb.QueryTableRequest{Filter: &late, K: &ten}
		answer, err := r.client.ExplainTableQueryPlan(r.ctx, &pb.ExplainTableQueryPlanRequest{Id: people, Query: query})
		return is(answer, err, func(a *pb.ExplainTableQueryPlanResponse) any { return a.GetPlan() != "" }, true)
	})
	r.check("AnalyzeTableQueryPlan", func() error {
		answer, err := r.client.AnalyzeTableQueryPlan(r.ctx, &pb.AnalyzeTableQueryPlanRequest{Id: people, K: &one})
		return is(answer, err, func(a *pb.AnalyzeTableQueryPlanResponse) any { return strings.Contains(a.GetAnalysis(), "rows") }, true)
	})
}

func (r *runner) indices() {
	r.check("CreateTableScalarIndex", func() error {
		return just(r.client.CreateTableScalarIndex(r.ctx, &pb.CreateTableScalarIndexRequest{Id: people, Column: "id", IndexType: "BTREE"}))
	})
	r.check("CreateTableIndex for vectors", func() error {
		metric, partitions := "l2", int32(1)
		return just(r.client.CreateTableIndex(r.ctx, &pb.CreateTableIndexRequest{
			Id: people, Column: "vector", IndexType: "IVF_FLAT", DistanceType: &metric, NumPartitions: &partitions,
		}))
	})
	r.check("ListTableIndices", func() error {
		answer, err := r.client.ListTableIndices(r.ctx, &pb.ListTableIndicesRequest{Id: people})
		return is(answer, err, func(a *pb.ListTableIndicesResponse) any {
			names := []string{}
			for _, index := range a.GetIndexes() {
				names = append(names, index.GetIndexName())
			}
			slices.Sort(names)
			return names
		}, []string{"id_idx", "vector_idx"})
	})
	r.check("DescribeTableIndexStats", func() error {
		answer, err := r.client.DescribeTableIndexStats(r.ctx, &pb.DescribeTableIndexStatsRequest{Id: people, IndexName: "id_idx"})
		return is(answer, err, func(a *pb.DescribeTableIndexStatsResponse) any { return a.GetNumIndexedRows() }, int64(5))
	})
	r.check("DropTableIndex", func() error {
		return just(r.client.DropTableIndex(r.ctx, &pb.DropTableIndexRequest{Id: people, IndexName: "id_idx"}))
	})
	r.rejected("DropTableIndex of none", 6, func() error {
		return just(r.client.DropTableIndex(r.ctx, &pb.DropTableIndexRequest{Id: people, IndexName: "id_idx"}))
	})
}
