"""Ways to connect LanceDB's own client: the region `local` and catalogs, with every answer checked."""

import asyncio
import sys
import urllib.request

import lancedb
import pyarrow as pa
from lancedb.index import FTS
from support import Session, people

URI, PART = sys.argv[1:3]
session = Session(f"lancedb (Python, {PART})", "lancedb")
check = session.check


def connect(name, **options):
    return lancedb.connect(f"db://{name}", api_key="k", host_override=URI, **options)


def refused(kind, call, *words):
    """Makes a call that has to fail with an error of a class whose text has all the words."""
    try:
        call()
    except kind as error:
        missing = [word for word in words if word not in str(error)]
        assert not missing, f"{error} lacks {missing}"
    else:
        raise AssertionError("it succeeded")


def region():
    local = connect("dev", region="local")
    with check("create_table"):
        local.create_table("t", people(3))
    with check("add and count_rows"):
        local.open_table("t").add(people(2, 4))
        assert local.open_table("t").count_rows() == 5
    with check("search"):
        assert len(local.open_table("t").search([1.0, 0.0]).limit(2).to_list()) == 2
    with check("without a region"):
        assert connect("other").open_table("t").count_rows() == 5
    with check("async"):

        async def names():
            db = await lancedb.connect_async("db://dev", api_key="k", host_override=URI, region="local")
            return await db.table_names()

        assert asyncio.run(names()) == ["t"]
    with check("drop_table"):
        local.drop_table("t")
        assert local.table_names() == []


def regions():
    for count, name in enumerate(["sales", "events"], 1):
        with check(f"create_table in {name}"):
            connect(name, region="local").create_table("t", people(count))
    for count, name in enumerate(["sales", "events"], 1):
        with check(f"count_rows in {name}"):
            assert connect(name, region="local").open_table("t").count_rows() == count
    with check("an unknown database"):
        refused(Exception, lambda: connect("nope", region="local").create_table("t", people(1)), "404")


def catalog():
    root = lancedb.connect_catalog(URI, api_key="k")
    plain = connect("shop")
    with check("a plain client before"):
        plain.create_table("t", people(9))
        plain.create_namespace(["team"])
    with check("create_database"):
        a = root.create_database("a")
    with check("create_database exist_ok"):
        b = root.create_database("b", exist_ok=True)
        root.create_database("b", exist_ok=True)
    with check("create_database again"):
        refused(Exception, lambda: root.create_database("a"), "a", "exists")
    with check("list_databases"):
        assert root.list_databases().databases == ["a", "b"]
        page = root.list_databases(limit=1)
        assert page.databases == ["a"]
        assert root.list_databases(page_token=page.page_token).databases == ["b"]
    with check("create_table in each"):
        a.create_table("t", people(1))
        b.create_table("t", people(2))
        assert [db.open_table("t").count_rows() for db in (a, b, plain)] == [1, 2, 9]
    with check("overwrite in one"):
        b.create_table("t", people(4), mode="overwrite")
        assert [db.open_table("t").count_rows() for db in (a, b, plain)] == [1, 4, 9]
    with check("table_names and list_tables"):
        a.create_table("more", people(1))
        assert sorted(a.table_names()) == ["more", "t"] and b.list_tables().tables == ["t"]
        assert plain.table_names() == ["t"]
        a.drop_table("more")
    with check("namespaces in a database"):
        a.create_namespace(["ns"])
        a.create_table("u", people(2), namespace_path=["ns"])
        assert a.list_namespaces().namespaces == ["ns"] and b.list_namespaces().namespaces == []
        assert a.open_table("u", namespace_path=["ns"]).count_rows() == 2
        a.rename_table("u", "v", cur_namespace_path=["ns"], new_namespace_path=["ns"])
        assert a.list_tables(["ns"]).tables == ["v"]
        a.drop_table("v", namespace_path=["ns"])
        a.drop_namespace(["ns"])
    with check("work on a table"):
        table = a.open_table("t")
        table.add(people(3, 2))
        table.update(where="id = 1", values={"name": "first"})
        table.delete("id = 2")
        table.merge_insert("id").when_not_matched_insert_all().execute(people(5))
        table.create_scalar_index("id")
        assert sorted(row["id"] for row in table.search([1.0, 0.0]).limit(9).to_list()) == [1, 2, 3, 4, 5]
        assert table.schema.names == ["id", "name", "vector"]
        assert [index.name for index in table.list_indices()] == ["id_idx"]
    with check("a view"):
        view = a.create_materialized_view("near", "t", select=["id"], where="id < 3")
        assert view.table.count_rows() == 2 and a.list_materialized_views() == ["near"]
        assert b.list_materialized_views() == []
        a.drop_materialized_view("near")
    with check("connect_database"):
        assert root.connect_database("a").open_table("t").count_rows() == 5
    with check("a connection by its serialized form"):
        assert lancedb.deserialize_conn(a.serialize()).open_table("t").count_rows() == 5
    with check("a namespace of other clients is no database"):
        refused(Exception, lambda: root.connect_database("team"), "team", "not a database")
        refused(Exception, lambda: root.create_database("team", exist_ok=True), "team", "not a database")
        assert connect("team").open_table("t").count_rows() == 9
        assert plain.list_namespaces().namespaces == ["a", "b", "team"]
    with check("connect_database of a missing one"):
        refused(Exception, lambda: root.connect_database("nope"), "nope", "not found")
    with check("drop_database with tables"):
        refused(Exception, lambda: root.drop_database("a"), "not empty")
        assert a.open_table("t").count_rows() == 5
    with check("drop_database"):
        a.drop_table("t")
        root.drop_database("a")
        assert root.list_databases().databases == ["b"]
        refused(Exception, lambda: root.drop_database("a"), "a", "not found")
        root.drop_database("a", ignore_missing=True)
    with check("async"):

        async def count():
            db = await (await lancedb.connect_catalog_async(URI, api_key="k")).connect_database("b")
            return await (await db.open_table("t")).count_rows()

        assert asyncio.run(count()) == 4
    with check("a plain client after"):
        assert plain.open_table("t").count_rows() == 9 and plain.table_names() == ["t"]


def configured():
    root = lancedb.connect_catalog(URI, api_key="k")
    with check("list_databases"):
        assert root.list_databases().databases == ["events", "sales"]
    with check("create_database exist_ok"):
        root.create_database("sales", exist_ok=True).create_table("t", people(1))
    with check("connect_database"):
        root.connect_database("events").create_table("t", people(2))
        assert connect("sales").open_table("t").count_rows() == 1
    with check("create_database again"):
        refused(Exception, lambda: root.create_database("sales"), "sales", "exists")
    with check("create_database of another name"):
        refused(Exception, lambda: root.create_database("new", exist_ok=True), "configuration", "new")
    with check("drop_database"):
        refused(Exception, lambda: root.drop_database("sales"), "configuration", "sales")
        refused(Exception, lambda: root.drop_database("new"), "new", "not found")
        root.drop_database("new", ignore_missing=True)


def jieba():
    table = connect("shop").create_table("t", pa.table({"id": [1, 2, 3], "text": ["我们是中国人", "他们", "我们"]}))

    def found(word):
        return sorted(row["id"] for row in table.search(word, query_type="fts").limit(9).to_list())

    with check("create_index"):
        table.create_index("text", config=FTS(base_tokenizer="jieba/default", stem=False, remove_stop_words=False))
        assert found("我们") == [1, 3] and found("中国人") == [1] and found("他们") == [2]
    with check("a row that is added"):
        table.add(pa.table({"id": [4], "text": ["中国人"]}))
        assert found("中国人") == [1, 4]
    with check("jieba alone"):
        table.create_index("text", config=FTS(base_tokenizer="jieba", stem=False, remove_stop_words=False))
        assert found("我们") == [1, 3]
    with check("a model that is missing"):
        for name in ["lindera/ipadic", "jieba/other"]:
            refused(Exception, lambda: table.create_index("text", config=FTS(base_tokenizer=name)), "no usable language model")
    with check("another directory"):
        refused(Exception, lambda: table.create_index("text", config=FTS(base_tokenizer="jieba/../x")), "unknown base tokenizer")
        assert found("我们") == [1, 3]


def legacy_blobs():
    db = connect("shop")
    legacy = {"lance-encoding:blob": "true"}

    def rows(ids, blobs, kind, metadata=None):
        schema = pa.schema([pa.field("id", pa.int64()), pa.field("video", kind, metadata=metadata)])
        return pa.table({"id": ids, "video": blobs}, schema=schema)

    def blobs(table):
        found = table.search().with_row_id(True).select(["id"]).limit(100).to_arrow()
        fetched = table.fetch_blobs("video", found["_rowid"].to_pylist()).to_pylist()
        return dict(zip(found["id"].to_pylist(), fetched))

    large = bytes(range(256)) * 10_000
    expected = {1: b"one", 2: None, 3: b"", 4: large}
    first = rows([1, 2, 3, 4], list(expected.values()), pa.large_binary(), legacy)
    with check("create_table"):
        table = db.create_table("t", first)
        assert table.blob_columns() == ["video"], table.schema
        assert blobs(table) == expected
    with check("create_table from a schema alone"):
        empty = db.create_table("empty", schema=first.schema)
        assert empty.blob_columns() == ["video"] and empty.count_rows() == 0
    with check("add"):
        for at, kind in [(10, pa.binary()), (11, pa.large_binary())]:
            table.add(rows([at], [b"raw"], kind))
            expected[at] = b"raw"
        table.add(rows([12], [b"legacy"], pa.large_binary(), legacy))
        assert blobs(table) == expected | {12: b"legacy"}
    with check("merge_insert"):
        merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(rows([10, 13], [b"changed", b"new"], pa.binary()))
        assert blobs(table) == expected | {12: b"legacy", 10: b"changed", 13: b"new"}
    with check("create_table mode=overwrite"):
        table = db.create_table("t", first, mode="overwrite")
        assert blobs(table) == {1: b"one", 2: None, 3: b"", 4: large}
    # The client compresses nothing; other writers of Arrow do.
    for compression in ["lz4", "zstd"]:
        for kind in [pa.binary(), pa.large_binary()]:
            with check(f"a body with {compression} of {kind}"):
                body = pa.BufferOutputStream()
                options = pa.ipc.IpcWriteOptions(compression=compression)
                sent = rows([1, 2, 3, 4], first["video"].cast(kind), kind, legacy)
                with pa.ipc.new_stream(body, sent.schema, options=options) as writer:
                    writer.write_table(sent, max_chunksize=3)
                headers = {"content-type": "application/vnd.apache.arrow.stream"}
                url = f"{URI}/v1/table/packed/create?mode=overwrite"
                request = urllib.request.Request(url, body.getvalue().to_pybytes(), headers, method="POST")
                urllib.request.urlopen(request).read()
                assert blobs(db.open_table("packed")) == {1: b"one", 2: None, 3: b"", 4: large}


PARTS = {"jieba": jieba, "legacy_blobs": legacy_blobs, "region": region, "regions": regions, "catalog": catalog, "configured": configured}
PARTS[PART]()
session.end()
