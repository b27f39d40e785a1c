package gateway;

import static gateway.Main.PEOPLE;
import static gateway.Session.equal;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.TreeSet;
import org.lance.namespace.client.apache.api.TableApi;
import org.lance.namespace.model.AddColumnsEntry;
import org.lance.namespace.model.AlterColumnsEntry;
import org.lance.namespace.model.AlterTableAddColumnsRequest;
import org.lance.namespace.model.AlterTableAlterColumnsRequest;
import org.lance.namespace.model.AlterTableDropColumnsRequest;
import org.lance.namespace.model.AnalyzeTableQueryPlanRequest;
import org.lance.namespace.model.CountTableRowsRequest;
import org.lance.namespace.model.CreateTableIndexRequest;
import org.lance.namespace.model.CreateTableTagRequest;
import org.lance.namespace.model.DeleteFromTableRequest;
import org.lance.namespace.model.DeleteTableTagRequest;
import org.lance.namespace.model.DescribeTableIndexStatsRequest;
import org.lance.namespace.model.DescribeTableVersionRequest;
import org.lance.namespace.model.ExplainTableQueryPlanRequest;
import org.lance.namespace.model.GetTableStatsRequest;
import org.lance.namespace.model.GetTableTagVersionRequest;
import org.lance.namespace.model.IndexContent;
import org.lance.namespace.model.ListTableIndicesRequest;
import org.lance.namespace.model.MergeInsertIntoTableResponse;
import org.lance.namespace.model.QueryTableRequest;
import org.lance.namespace.model.QueryTableRequestColumns;
import org.lance.namespace.model.QueryTableRequestVector;
import org.lance.namespace.model.RestoreTableRequest;
import org.lance.namespace.model.TableVersion;
import org.lance.namespace.model.UpdateTableRequest;
import org.lance.namespace.model.UpdateTableTagRequest;

/** The part of the session that works on one table. */
record Data(Session session, TableApi tables, Path rows) {
  void run() {
    writes();
    queries();
    indices();
    columns();
    versions();
  }

  private void writes() {
    session.check(
        "insertIntoTable",
        () -> tables.insertIntoTable(PEOPLE, body("more"), null, null));
    session.rejected(
        "insertIntoTable of other columns",
        400,
        20,
        () -> tables.insertIntoTable(PEOPLE, body("other"), null, null));
    session.check("countTableRows", () -> equal(count(new CountTableRowsRequest()), 5L));
    session.check(
        "countTableRows by a predicate",
        () -> equal(count(new CountTableRowsRequest().predicate("id >= 10")), 2L));
    session.check(
        "countTableRows of a version",
        () -> equal(count(new CountTableRowsRequest().version(1L)), 3L));
    session.rejected(
        "countTableRows of no version",
        404,
        11,
        () -> count(new CountTableRowsRequest().version(99L)));
    session.check(
        "mergeInsertIntoTable",
        () -> {
          MergeInsertIntoTableResponse merged =
              tables.mergeInsertIntoTable(
                  PEOPLE, "id", body("merge"), null, true, null, true, null, null, null, null);
          equal(List.of(merged.getNumUpdatedRows(), merged.getNumInsertedRows()), List.of(1L, 1L));
        });
    session.check(
        "updateTable",
        () -> {
          UpdateTableRequest request =
              new UpdateTableRequest().predicate("id = 1").addUpdatesItem(List.of("name", "'Ada'"));
          equal(tables.updateTable(PEOPLE, request, null).getUpdatedRows(), 1L);
        });
    session.check(
        "deleteFromTable",
        () -> {
          DeleteFromTableRequest request = new DeleteFromTableRequest().predicate("id = 12");
          equal(tables.deleteFromTable(PEOPLE, request, null).getVersion(), 5L);
        });
    session.check(
        "getTableStats",
        () -> equal(tables.getTableStats(PEOPLE, new GetTableStatsRequest(), null).getNumRows(), 5L));
  }

  private void queries() {
    QueryTableRequestVector near = new QueryTableRequestVector().singleVector(List.of(1.1f, 0f));
    QueryTableRequestVector none = new QueryTableRequestVector();
    session.check(
        "queryTable for the nearest",
        () -> {
          QueryTableRequestColumns name = new QueryTableRequestColumns().addColumnNamesItem("name");
          String file = query(new QueryTableRequest().vector(near).k(1).columns(name));
          equal(file.startsWith("ARROW1") && file.endsWith("ARROW1"), true);
          equal(file.contains("Ada") && !file.contains("p2"), true);
        });
    session.check(
        "queryTable by a filter",
        () -> {
          String file = query(new QueryTableRequest().vector(none).k(9).filter("id = 10"));
          equal(file.contains("p10") && !file.contains("p11"), true);
        });
    session.check(
        "explainTableQueryPlan",
        () -> {
          QueryTableRequest query = new QueryTableRequest().vector(near).k(1);
          ExplainTableQueryPlanRequest request = new ExplainTableQueryPlanRequest().query(query);
          equal(tables.explainTableQueryPlan(PEOPLE, request, null).contains("KNN"), true);
        });
    session.check(
        "analyzeTableQueryPlan",
        () -> {
          AnalyzeTableQueryPlanRequest request = new AnalyzeTableQueryPlanRequest().vector(none).k(1);
          equal(tables.analyzeTableQueryPlan(PEOPLE, request, null).contains("rows"), true);
        });
  }

  private void indices() {
    session.check(
        "createTableScalarIndex",
        () -> {
          CreateTableIndexRequest request =
              new CreateTableIndexRequest().column("id").indexType("BTREE");
          tables.createTableScalarIndex(PEOPLE, request, null);
        });
    session.check(
        "createTableIndex",
        () -> {
          CreateTableIndexRequest request =
              new CreateTableIndexRequest().column("name").indexType("FTS").name("words");
          tables.createTableIndex(PEOPLE, request, null);
        });
    session.check(
        "listTableIndices",
        () -> {
          List<IndexContent> found =
              tables.listTableIndices(PEOPLE, new ListTableIndicesRequest(), null).getIndexes();
          TreeSet<String> names = new TreeSet<>();
          found.forEach(index -> names.add(index.getIndexName()));
          equal(List.copyOf(names), List.of("id_idx", "words"));
        });
    session.check(
        "describeTableIndexStats",
        () -> {
          DescribeTableIndexStatsRequest request = new DescribeTableIndexStatsRequest();
          Long indexed =
              tables.describeTableIndexStats(PEOPLE, "id_idx", request, null).getNumIndexedRows();
          equal(indexed, 5L);
        });
    session.check("dropTableIndex", () -> tables.dropTableIndex(PEOPLE, "words", null));
    session.rejected(
        "dropTableIndex of none", 404, 6, () -> tables.dropTableIndex(PEOPLE, "words", null));
  }

  private void columns() {
    session.check(
        "alterTableAddColumns",
        () -> {
          AddColumnsEntry twice = new AddColumnsEntry().name("twice").expression("id * 2");
          tables.alterTableAddColumns(
              PEOPLE, new AlterTableAddColumnsRequest().addNewColumnsItem(twice), null);
          equal(count(new CountTableRowsRequest().predicate("twice = id * 2")), 5L);
        });
    session.check(
        "alterTableAlterColumns",
        () -> {
          AlterColumnsEntry rename = new AlterColumnsEntry().path("twice").rename("double");
          tables.alterTableAlterColumns(
              PEOPLE, new AlterTableAlterColumnsRequest().addAlterationsItem(rename), null);
        });
    AlterTableDropColumnsRequest drop = new AlterTableDropColumnsRequest().addColumnsItem("double");
    session.check(
        "alterTableDropColumns", () -> tables.alterTableDropColumns(PEOPLE, drop, null));
    session.rejected(
        "alterTableDropColumns of none",
        404,
        12,
        () -> tables.alterTableDropColumns(PEOPLE, drop, null));
  }

  private void versions() {
    session.check(
        "listTableVersions",
        () -> {
          List<TableVersion> versions =
              tables.listTableVersions(PEOPLE, null, null, null, true).getVersions();
          equal(versions.get(versions.size() - 1).getVersion(), 1L);
        });
    session.check(
        "describeTableVersion",
        () -> {
          DescribeTableVersionRequest request = new DescribeTableVersionRequest().version(2L);
          equal(tables.describeTableVersion(PEOPLE, request, null).getVersion().getVersion(), 2L);
        });
    session.check(
        "createTableTag",
        () ->
            tables.createTableTag(
                PEOPLE, new CreateTableTagRequest().tag("first").version(1L), null));
    session.check(
        "updateTableTag",
        () ->
            tables.updateTableTag(
                PEOPLE, new UpdateTableTagRequest().tag("first").version(2L), null));
    session.check(
        "getTableTagVersion",
        () -> {
          GetTableTagVersionRequest request = new GetTableTagVersionRequest().tag("first");
          equal(tables.getTableTagVersion(PEOPLE, request, null).getVersion(), 2L);
        });
    session.check(
        "listTableTags",
        () ->
            equal(
                tables.listTableTags(PEOPLE, null, null, null).getTags().get("first").getVersion(),
                2L));
    session.check(
        "deleteTableTag",
        () -> tables.deleteTableTag(PEOPLE, new DeleteTableTagRequest().tag("first"), null));
    session.check(
        "restoreTable",
        () -> {
          tables.restoreTable(PEOPLE, new RestoreTableRequest().version(1L), null);
          equal(count(new CountTableRowsRequest()), 3L);
        });
  }

  private Long count(CountTableRowsRequest request) throws Exception {
    return tables.countTableRows(PEOPLE, request, null);
  }

  private String query(QueryTableRequest request) throws Exception {
    return new String(tables.queryTable(PEOPLE, request, null), StandardCharsets.ISO_8859_1);
  }

  private byte[] body(String name) throws Exception {
    return Files.readAllBytes(rows.resolve(name + ".arrow"));
  }
}
