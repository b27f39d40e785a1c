"""An ordinary session of lance-spark. Arguments: the address of a gateway, and the folder of the connector's jars."""

import sys
from pathlib import Path

from lance_namespace import ListTableIndicesRequest
from pyspark.sql import SparkSession
from support import check_rows, open_namespace

uri, folder = sys.argv[1:]
gateway = open_namespace(uri, "spark")
TABLE = ["spark", "t"]
jars = [str(jar) for jar in Path(folder).glob("*.jar")]
settings = {
    "spark.jars": ",".join(jars),
    "spark.driver.extraClassPath": ":".join(jars),
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.extensions": "org.lance.spark.extensions.LanceSparkSessionExtensions",
    "spark.sql.catalog.lance": "org.lance.spark.LanceNamespaceSparkCatalog",
    "spark.sql.catalog.lance.impl": "rest",
    "spark.sql.catalog.lance.uri": uri,
}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
spark.sparkContext.setLogLevel("ERROR")


def sql(statement):
    return [tuple(row) for row in spark.sql(statement).collect()]


def check(expected):
    rows = [{"id": id, "name": name} for id, name in expected]
    assert sql("SELECT id, name FROM lance.spark.t ORDER BY id") == expected
    return check_rows(gateway, TABLE, rows)


sql("CREATE TABLE lance.spark.t (id BIGINT NOT NULL, name STRING)")
sql("INSERT INTO lance.spark.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
sql("INSERT INTO lance.spark.t VALUES (4, 'd')")
check([(1, "a"), (2, "b"), (3, "c"), (4, "d")])
sql("UPDATE lance.spark.t SET name = 'z' WHERE id = 1")
sql("DELETE FROM lance.spark.t WHERE id = 2")
changes = "SELECT 4 AS id, 'm' AS name UNION ALL SELECT 9, 'n'"
sql(
    f"MERGE INTO lance.spark.t t USING ({changes}) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT *"
)
merged = [(1, "z"), (3, "c"), (4, "m"), (9, "n")]
check(merged)

sql("ALTER TABLE lance.spark.t CREATE INDEX by_id USING btree (id)")
[index] = gateway.list_table_indices(ListTableIndicesRequest(id=TABLE)).indexes
assert (index.index_name, index.columns, index.num_indexed_rows) == ("by_id", ["id"], 4), index
sql("OPTIMIZE lance.spark.t")
assert len(check(merged).get_fragments()) == 1
assert sql("SELECT count(*), sum(id) FROM lance.spark.t") == [(4, sum(id for id, _ in merged))]

sql("CREATE TABLE lance.spark.copy AS SELECT * FROM lance.spark.t")
check_rows(gateway, ["spark", "copy"], [{"id": id, "name": name} for id, name in merged])
assert sorted(row[1] for row in sql("SHOW TABLES IN lance.spark")) == ["copy", "t"]
sql("DROP TABLE lance.spark.copy")
assert [row[1] for row in sql("SHOW TABLES IN lance.spark")] == ["t"]
spark.stop()
