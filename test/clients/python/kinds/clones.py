"""Clones: tables that begin with the rows of another one."""

from beside import WAIT, fruit
from lancedb.index import BTree


def t(db):
    return db.open_table("t")


def place(table):
    """Returns the address of a table."""
    return table.uri() if callable(table.uri) else table.uri


def rows(table, where="true"):
    return sorted(table.search().where(where).select(["id"]).to_arrow()["id"].to_pylist())


def clones(both):
    """Copies versions of a table, and changes and drops what they were copied from."""
    both.same("create_table", lambda db: db.create_table("t", fruit(300)).version)
    both.same("add", lambda db: t(db).add(fruit(5, 300)).version)
    both.same("index", lambda db: t(db).create_index("id", config=BTree(), wait_timeout=WAIT))
    both.same("delete", lambda db: t(db).delete("id = 2").version)
    both.same("a tag", lambda db: t(db).tags.create("two", 2))
    clone = lambda db, name, **options: db.clone_table(name, place(t(db)), **options)  # noqa: E731
    both.same("clone_table", lambda db: [(copy := clone(db, "copy")).name, copy.version, copy.schema, rows(copy, "id < 5")])
    both.same("its indices", lambda db: [(i.name, i.index_type, i.columns) for i in db.open_table("copy").list_indices()])
    both.same("a search by its index", lambda db: rows(db.open_table("copy"), "id between 3 and 4"))
    both.same("its versions", lambda db: [entry["version"] for entry in db.open_table("copy").list_versions()])
    both.same("its tags", lambda db: sorted(db.open_table("copy").tags.list()))
    both.same("of a version", lambda db: clone(db, "first", source_version=1).count_rows())
    both.same("of a tag", lambda db: [(copy := clone(db, "second", source_tag="two")).version, copy.count_rows()])
    both.same("of a clone", lambda db: db.clone_table("again", place(db.open_table("copy"))).count_rows())
    both.same("of a version and a tag", lambda db: clone(db, "other", source_version=1, source_tag="two"))
    both.same("of a missing version", lambda db: clone(db, "other", source_version=99))
    both.same("of a missing tag", lambda db: clone(db, "other", source_tag="nope"))
    both.same("of a missing table", lambda db: db.clone_table("other", f"{place(t(db))}-nope"))
    both.same("by a name that is taken", lambda db: clone(db, "copy"))
    both.same("a deep one", lambda db: clone(db, "deep", is_shallow=False).count_rows())
    both.same("into a namespace", lambda db: [db.create_namespace(["team"]).properties or {}, clone(db, "t", target_namespace_path=["team"]).count_rows()])
    both.same("write to it", lambda db: [db.open_table("copy").add(fruit(2, 500)).version, db.open_table("copy").delete("id = 4").version])
    both.same("rows of both", lambda db: [rows(table, "id < 6 or id >= 500") for table in (t(db), db.open_table("copy"))])
    both.same("drop the source", lambda db: [db.drop_table("t"), rows(db.open_table("copy"), "id < 6 or id >= 500")])


KINDS = [clones]
