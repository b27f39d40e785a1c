"""The calls of a connection."""

from lancedb.functions import udf

from .ground import rows_of


def names(found):
    return list(found)


def create_materialized_view(c):
    view = yield c.db.create_materialized_view("mv", "t", select=["id", ("twice", "id * 2")], where="id > 1")
    return (yield rows(view.table))


def create_materialized_view_async(c):
    job = yield c.db.create_materialized_view_async("mv", "t", select=["id"])
    yield job.wait()
    return (yield rows((yield c.db.open_table("mv"))))


def open_materialized_view(c):
    yield c.db.create_materialized_view("mv", "t", with_no_data=True)
    view = yield c.db.open_materialized_view("mv")
    return [view.name, (yield view.table.count_rows())]


def list_materialized_views(c):
    yield c.db.create_materialized_view("mv", "t")
    return names((yield c.db.list_materialized_views()))


def create_view(c):
    view = yield c.db.create_view("view", "SELECT * FROM t")
    yield c.db.drop_view("view")
    return [view.name, view.query]


def describe_view(c):
    yield c.db.create_view("view", "SELECT id FROM t")
    view = yield c.db.describe_view("view")
    yield c.db.drop_view("view")
    return [view.name, view.query]


def list_views(c):
    yield c.db.create_view("view", "SELECT id FROM t")
    views = names((yield c.db.list_views()))
    yield c.db.drop_view("view")
    return views


def drop_view(c):
    yield c.db.create_view("view", "SELECT id FROM t")
    yield c.db.drop_view("view")
    return names((yield c.db.list_views()))


def drop_view_async(c):
    yield c.db.create_view("view", "SELECT id FROM t")
    yield (yield c.db.drop_view_async("view")).wait()
    return names((yield c.db.list_views()))


def drop_materialized_view(c):
    yield c.db.create_materialized_view("mv", "t")
    yield c.db.drop_materialized_view("mv")
    return names((yield c.db.table_names()))


def drop_materialized_view_async(c):
    yield c.db.create_materialized_view("mv", "t")
    yield (yield c.db.drop_materialized_view_async("mv")).wait()
    return names((yield c.db.table_names()))


def rows(table):
    """The ids of a table, by the call that both clients have."""
    return table.head(10)


def create_function(c):
    @udf
    def twice(x: int) -> int:
        return 2 * x

    return c.db.create_function(twice)


def create_function_async(c):
    @udf
    def twice(x: int) -> int:
        return 2 * x

    return c.db.create_function_async(twice)


def clone_table(c):
    # The client of a directory takes the address of a table, a remote one its name as well.
    uri = yield uri_of(c.t)
    copy = yield c.db.clone_table("copy", uri)
    return (yield copy.count_rows())


def uri_of(table):
    return table.uri() if callable(table.uri) else table.uri


def create_namespace(c):
    yield c.db.create_namespace(["team"], properties={"owner": "ada"})
    return (yield c.db.describe_namespace(["team"])).properties


def drop_namespace(c):
    yield c.db.create_namespace(["team"])
    yield c.db.drop_namespace(["team"])
    return (yield c.db.list_namespaces()).namespaces


def list_namespaces(c):
    yield c.db.create_namespace(["team"])
    return (yield c.db.list_namespaces()).namespaces


def namespace_exists(c):
    yield c.db.create_namespace(["team"])
    return [(yield c.db.namespace_exists(["team"])), (yield c.db.namespace_exists(["other"]))]


def table_exists(c):
    return [(yield c.db.table_exists(["t"])), (yield c.db.table_exists(["other"]))]


def drop_table(c):
    yield c.db.drop_table("t")
    return names((yield c.db.table_names()))


def drop_table_async(c):
    yield (yield c.db.drop_table_async("t")).wait()
    return names((yield c.db.table_names()))


def rename_table(c):
    yield c.db.rename_table("t", "renamed")
    return names((yield c.db.table_names()))


def create_table(c):
    table = yield c.db.create_table("other", rows_of([4, 5]))
    return (yield table.count_rows())


def open_table(c):
    return (yield (yield c.db.open_table("t")).count_rows())


def list_tables(c):
    return (yield c.db.list_tables()).tables


def refresh(c):
    """Work that a server does as a job, and the library in this process; it has ended."""
    yield c.t.add_columns(computed={"twice": "id * 2"})
    job = yield c.t.refresh_column_async("twice")
    yield job.wait()
    return job


def list_jobs(c):
    job = yield from refresh(c)
    return job.id in [each.job_id for each in (yield c.db.list_jobs())]


def open_job(c):
    job = yield c.db.open_job((yield from refresh(c)).id)
    return (yield job.status())


def cancel_job(c):
    return (yield c.db.cancel_job((yield from refresh(c)).id))


def pause_job(c):
    return (yield c.db.pause_job((yield from refresh(c)).id))


def resume_job(c):
    return (yield c.db.resume_job((yield from refresh(c)).id))


def drop_all_tables(c):
    yield c.db.drop_all_tables()
    return names((yield c.db.table_names()))


def drop_database(c):
    yield c.db.drop_database()


def execute_query(c):
    reader = yield c.db.execute_query("SELECT id FROM t ORDER BY id")
    return reader.read_all()


def execute_query_async(c):
    query = yield c.db.execute_query_async("SELECT id FROM t ORDER BY id")
    return (yield query.reader()).read_all()


def describe_query(c):
    query = yield c.db.execute_query_async("SELECT id FROM t")
    return (yield c.db.describe_query(query.id))


CONNECTION = {
    "alter_secret": lambda c: c.db.alter_secret("key", "new"),
    "cancel_job": cancel_job,
    "clone_table": clone_table,
    "close": lambda c: c.db.close(),
    "create_function": create_function,
    "create_function_async": create_function_async,
    "create_materialized_view": create_materialized_view,
    "create_materialized_view_async": create_materialized_view_async,
    "create_namespace": create_namespace,
    "create_secret": lambda c: c.db.create_secret("key", "value"),
    "create_table": create_table,
    "create_view": create_view,
    "describe_namespace": create_namespace,
    "describe_query": describe_query,
    "describe_secret": lambda c: c.db.describe_secret("key"),
    "describe_view": describe_view,
    "drop_all_tables": drop_all_tables,
    "drop_database": drop_database,
    "drop_function": lambda c: c.db.drop_function("f", version="1"),
    "drop_function_async": lambda c: c.db.drop_function_async("f", version="1"),
    "drop_materialized_view": drop_materialized_view,
    "drop_materialized_view_async": drop_materialized_view_async,
    "drop_namespace": drop_namespace,
    "drop_secret": lambda c: c.db.drop_secret("key"),
    "drop_table": drop_table,
    "drop_table_async": drop_table_async,
    "drop_view": drop_view,
    "drop_view_async": drop_view_async,
    "execute_query": execute_query,
    "execute_query_async": execute_query_async,
    "get_function": lambda c: c.db.get_function("f", version="1"),
    "get_read_consistency_interval": lambda c: c.db.get_read_consistency_interval(),
    "is_open": lambda c: c.db.is_open(),
    "list_functions": lambda c: c.db.list_functions(),
    "list_jobs": list_jobs,
    "list_materialized_views": list_materialized_views,
    "list_namespaces": list_namespaces,
    "list_secrets": lambda c: c.db.list_secrets(),
    "list_tables": list_tables,
    "list_views": list_views,
    "namespace_client": lambda c: c.db.namespace_client(),
    "namespace_exists": namespace_exists,
    "open_job": open_job,
    "open_materialized_view": open_materialized_view,
    "open_table": open_table,
    "pause_job": pause_job,
    "rename_table": rename_table,
    "resume_job": resume_job,
    "serialize": lambda c: c.db.serialize(),
    "table_exists": table_exists,
    "table_names": lambda c: c.db.table_names(),
    "uri": lambda c: c.db.uri,
}
