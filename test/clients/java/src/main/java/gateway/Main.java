package gateway;

import static gateway.Session.equal;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.lance.namespace.client.apache.ApiClient;
import org.lance.namespace.client.apache.api.NamespaceApi;
import org.lance.namespace.client.apache.api.TableApi;
import org.lance.namespace.model.CreateNamespaceRequest;
import org.lance.namespace.model.DeclareTableRequest;
import org.lance.namespace.model.DeregisterTableRequest;
import org.lance.namespace.model.DescribeNamespaceRequest;
import org.lance.namespace.model.DescribeTableRequest;
import org.lance.namespace.model.DropNamespaceRequest;
import org.lance.namespace.model.JsonArrowField;
import org.lance.namespace.model.ListTablesResponse;
import org.lance.namespace.model.NamespaceExistsRequest;
import org.lance.namespace.model.RegisterTableRequest;
import org.lance.namespace.model.RenameTableRequest;
import org.lance.namespace.model.TableExistsRequest;

/**
 * An ordinary session of `lance-namespace-apache-client`. Arguments: the gateway's address, the folder with the rows
 * that are sent (Arrow IPC streams), the client's version.
 */
public final class Main {
  static final String PEOPLE = "java$people";

  private final Session session = new Session();
  private final NamespaceApi namespaces;
  private final TableApi tables;
  private final Path rows;

  private Main(String uri, String rows) {
    ApiClient client = new ApiClient().setBasePath(uri);
    this.namespaces = new NamespaceApi(client);
    this.tables = new TableApi(client);
    this.rows = Path.of(rows);
  }

  public static void main(String[] arguments) throws Exception {
    Main main = new Main(arguments[0], arguments[1]);
    main.namespaces();
    main.tables();
    new Data(main.session, main.tables, main.rows).run();
    main.endings();
    boolean passed = main.session.end("lance-namespace-apache-client (Java)", arguments[2]);
    System.exit(passed ? 0 : 1);
  }

  private void namespaces() {
    Map<String, String> owner = Map.of("owner", "ada");
    session.check(
        "createNamespace",
        () -> {
          CreateNamespaceRequest request = new CreateNamespaceRequest().properties(owner);
          equal(namespaces.createNamespace("java", request, null).getProperties(), owner);
        });
    session.rejected(
        "createNamespace that is there",
        409,
        2,
        () -> namespaces.createNamespace("java", new CreateNamespaceRequest(), null));
    session.check(
        "createNamespace with ExistOk",
        () -> namespaces.createNamespace("java", new CreateNamespaceRequest().mode("ExistOk"), null));
    session.check(
        "createNamespace below",
        () -> namespaces.createNamespace("java$inner", new CreateNamespaceRequest(), null));
    session.check(
        "createNamespace with another delimiter",
        () -> namespaces.createNamespace("java/other", new CreateNamespaceRequest(), "/"));
    session.check(
        "describeNamespace",
        () -> {
          DescribeNamespaceRequest request = new DescribeNamespaceRequest();
          equal(namespaces.describeNamespace("java", request, null).getProperties(), owner);
        });
    session.check(
        "listNamespaces",
        () ->
            equal(
                List.copyOf(namespaces.listNamespaces("java", null, null, null).getNamespaces()),
                List.of("inner", "other")));
    session.check(
        "namespaceExists",
        () -> namespaces.namespaceExists("java", new NamespaceExistsRequest(), null));
    session.rejected(
        "namespaceExists of none",
        404,
        1,
        () -> namespaces.namespaceExists("nowhere", new NamespaceExistsRequest(), null));
  }

  private void tables() {
    session.check(
        "createTable",
        () -> equal(tables.createTable(PEOPLE, people(), null, null, null, null).getVersion(), 1L));
    session.rejected(
        "createTable that is there",
        409,
        5,
        () -> tables.createTable(PEOPLE, people(), null, null, null, null));
    session.rejected(
        "createTable of no Arrow",
        400,
        13,
        () -> tables.createTable("java$broken", "none".getBytes(), null, null, null, null));
    session.check(
        "declareTable",
        () ->
            equal(
                tables.declareTable("java$declared", new DeclareTableRequest(), null).getLocation()
                    != null,
                true));
    session.check(
        "listTables",
        () ->
            equal(
                List.copyOf(tables.listTables("java", null, null, null, null).getTables()),
                List.of("declared", "people")));
    session.check(
        "listTables page by page",
        () -> {
          ListTablesResponse first = tables.listTables("java", null, null, 1, null);
          ListTablesResponse second = tables.listTables("java", null, first.getPageToken(), 1, null);
          equal(List.copyOf(first.getTables()), List.of("declared"));
          equal(List.copyOf(second.getTables()), List.of("people"));
        });
    session.check("tableExists", () -> tables.tableExists(PEOPLE, new TableExistsRequest(), null));
    session.check(
        "describeTable",
        () ->
            equal(
                tables
                    .describeTable(PEOPLE, new DescribeTableRequest(), null, true, true, true)
                    .getSchema()
                    .getFields()
                    .stream()
                    .map(JsonArrowField::getName)
                    .toList(),
                List.of("id", "name", "vector")));
    session.rejected(
        "describeTable of none",
        404,
        4,
        () ->
            tables.describeTable(
                "java$missing", new DescribeTableRequest(), null, null, null, null));
  }

  private void endings() {
    session.check(
        "renameTable",
        () -> tables.renameTable(PEOPLE, new RenameTableRequest().newTableName("folk"), null));
    String[] location = new String[1];
    session.check(
        "deregisterTable",
        () ->
            location[0] =
                tables
                    .deregisterTable("java$folk", new DeregisterTableRequest(), null)
                    .getLocation()
                    .replaceAll("/$", "")
                    .replaceAll(".*/", ""));
    session.check(
        "registerTable",
        () ->
            tables.registerTable(
                "java$again", new RegisterTableRequest().location(location[0]), null));
    session.check("dropTable", () -> tables.dropTable("java$again", null));
    session.rejected("dropTable of none", 404, 4, () -> tables.dropTable("java$again", null));
    session.rejected(
        "dropNamespace that is not empty",
        409,
        3,
        () -> namespaces.dropNamespace("java", new DropNamespaceRequest(), null));
    session.check(
        "dropNamespace with everything",
        () ->
            namespaces.dropNamespace("java", new DropNamespaceRequest().behavior("Cascade"), null));
  }

  private byte[] people() throws Exception {
    return Files.readAllBytes(rows.resolve("people.arrow"));
  }
}
