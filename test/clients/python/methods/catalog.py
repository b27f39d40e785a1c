"""The calls of a catalog, whose databases are namespaces of the gateway. The library has catalogs of servers only."""

from .ground import rows_of


def opened(call):
    """Makes a call on a catalog that has a database."""

    def whole(c):
        catalog = yield c.catalog()
        db = yield catalog.create_database("shelf")
        answer = yield from call(c, catalog, db)
        yield catalog.drop_database("shelf", ignore_missing=True)
        return answer

    return whole


def create_database(c, catalog, db):
    yield db.create_table("books", rows_of([1, 2]))
    again = yield catalog.create_database("shelf", exist_ok=True)
    count = yield (yield again.open_table("books")).count_rows()
    yield db.drop_table("books")
    return count


def connect_database(c, catalog, db):
    found = yield catalog.connect_database("shelf")
    return (yield found.list_tables()).tables


def list_databases(c, catalog, db):
    yield catalog.create_database("second")
    page = yield catalog.list_databases(limit=1)
    rest = yield catalog.list_databases(page_token=page.page_token)
    yield catalog.drop_database("second")
    return page.databases + rest.databases


def drop_database(c, catalog, db):
    yield catalog.drop_database("shelf")
    return (yield catalog.list_databases()).databases


def uri(c, catalog, db):
    return catalog.uri.startswith("http")
    yield


CATALOG = {
    "connect_database": opened(connect_database),
    "create_database": opened(create_database),
    "drop_database": opened(drop_database),
    "list_databases": opened(list_databases),
    "uri": opened(uri),
}
