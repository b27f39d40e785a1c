package gateway;

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;

/** An ordinary session of Arrow's JDBC driver: queries, parameters and metadata of the table {@code people}, with the columns id and name. */
final class JdbcSession {
  public static void main(String[] args) throws SQLException {
    String url = "jdbc:arrow-flight-sql://" + args[0] + "/?useEncryption=false";
    try (Connection connection = DriverManager.getConnection(url)) {
      queries(connection);
      parameters(connection);
      metadata(connection.getMetaData());
      refusals(connection);
    }
    System.out.println("ok");
  }

  private static void queries(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      expect(texts(statement.executeQuery("SELECT name FROM people WHERE id >= 2 ORDER BY id")), List.of("b", "c"));
      ResultSet row = statement.executeQuery("SELECT 1 AS one, 1.50::DECIMAL(5, 2) AS price, DATE '2020-02-03' AS day, true AS flag");
      ResultSetMetaData columns = row.getMetaData();
      expect(columns.getColumnCount(), 4);
      expect(columns.getColumnLabel(2), "price");
      expect(row.next(), true);
      expect(row.getInt("one"), 1);
      expect(row.getBigDecimal("price"), new BigDecimal("1.50"));
      expect(row.getDate("day").toLocalDate().toString(), "2020-02-03");
      expect(row.getBoolean("flag"), true);
      expect(row.next(), false);
      ResultSet many = statement.executeQuery("SELECT range AS n FROM range(100000)");
      long sum = 0;
      while (many.next()) sum += many.getLong(1);
      expect(sum, 4_999_950_000L);
    }
  }

  private static void parameters(Connection connection) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement("SELECT name FROM people WHERE id = ? AND name <> ?")) {
      for (int id = 1; id <= 2; id++) {
        statement.setLong(1, id);
        statement.setString(2, "c");
        expect(texts(statement.executeQuery()), List.of(id == 1 ? "a" : "b"));
      }
    }
  }

  private static void metadata(DatabaseMetaData metadata) throws SQLException {
    expect(metadata.getDatabaseProductName(), "Lance Gateway");
    expect(texts(metadata.getCatalogs()), List.of("lance"));
    expect(texts(metadata.getTableTypes()), List.of("TABLE", "VIEW"));
    List<String> tables = new ArrayList<>();
    try (ResultSet found = metadata.getTables(null, "public", "peo%", null)) {
      while (found.next()) tables.add(found.getString("TABLE_NAME"));
    }
    expect(tables, List.of("people"));
    List<String> columns = new ArrayList<>();
    try (ResultSet found = metadata.getColumns(null, "public", "people", "%")) {
      while (found.next()) columns.add(found.getString("COLUMN_NAME") + " " + found.getString("TYPE_NAME"));
    }
    expect(columns, List.of("id BIGINT", "name VARCHAR"));
    try (ResultSet keys = metadata.getPrimaryKeys(null, "public", "people")) {
      expect(keys.next(), false);
    }
    try (ResultSet schemas = metadata.getSchemas()) {
      expect(schemas.next(), true);
    }
  }

  private static void refusals(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.executeQuery("SELECT * FROM no_such_table");
      throw new AssertionError("a missing table is read");
    } catch (SQLException error) {
      if (!error.getMessage().contains("not found")) throw error;
    }
  }

  /** Returns the first column. */
  private static List<String> texts(ResultSet rows) throws SQLException {
    List<String> found = new ArrayList<>();
    while (rows.next()) found.add(rows.getString(1));
    rows.close();
    return found;
  }

  private static void expect(Object found, Object wanted) {
    if (!found.equals(wanted)) throw new AssertionError("found " + found + ", and not " + wanted);
  }
}
