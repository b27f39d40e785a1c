"""Changes of a schema."""

import pyarrow as pa
from beside import fruit


def t(db):
    return db.open_table("t")


def schema_changes(both):
    """Adds, alters and drops columns."""
    both.same("create_table", lambda db: db.create_table("t", fruit(3)).version)
    both.same("add_columns", lambda db: [t(db).add_columns({"twice": "id * 2", "upper": "upper(text)"}), t(db).schema])
    both.same("add_columns of a type", lambda db: [t(db).add_columns(pa.field("score", pa.float64())), t(db).schema])
    both.same("add_columns of a schema", lambda db: [t(db).add_columns(pa.schema([pa.field("a", pa.int8()), pa.field("b", pa.list_(pa.string()))])), t(db).schema])
    both.same("rows", lambda db: t(db).search().to_arrow())
    both.same("a column that exists", lambda db: t(db).add_columns({"twice": "1"}))
    both.same("an expression that does not parse", lambda db: t(db).add_columns({"bad": "id +"}))
    both.same("an expression of a missing column", lambda db: t(db).add_columns({"bad": "nope + 1"}))
    both.same("rename", lambda db: [t(db).alter_columns({"path": "upper", "rename": "capitals"}), t(db).schema])
    both.same("cast", lambda db: [t(db).alter_columns({"path": "twice", "data_type": pa.int32()}), t(db).schema])
    both.same("nullable", lambda db: [t(db).alter_columns({"path": "score", "nullable": True}), t(db).schema])
    both.same("not nullable", lambda db: t(db).alter_columns({"path": "score", "nullable": False}))
    both.same("alter a missing column", lambda db: t(db).alter_columns({"path": "nope", "rename": "x"}))
    both.same("rename to a column that exists", lambda db: t(db).alter_columns({"path": "twice", "rename": "id"}))
    both.same("a cast that is not possible", lambda db: t(db).alter_columns({"path": "text", "data_type": pa.list_(pa.int32())}))
    both.same("drop_columns", lambda db: [t(db).drop_columns(["capitals", "score"]), t(db).schema])
    both.same("drop a missing column", lambda db: t(db).drop_columns(["nope"]))
    both.same("drop all columns", lambda db: t(db).drop_columns(["id", "text", "vector", "twice", "a", "b"]))
    both.same("write after it", lambda db: [t(db).add(fruit(1, 9)), t(db).search().where("id = 9").to_arrow()])
    both.same("metadata of a field", lambda db: [t(db).update_field_metadata({"path": "text", "metadata": {"language": "en"}}), t(db).schema])


def computed_columns(both):
    """Keeps columns that follow from others."""
    both.same("create_table", lambda db: db.create_table("t", fruit(3)).version)
    both.same("add_columns", lambda db: [t(db).add_columns(computed={"twice": "id * 2"}).version, t(db).schema.names])
    both.same("before a refresh", lambda db: t(db).search().select(["id", "twice"]).to_arrow())

    def refresh(db):
        result = t(db).refresh_column_async("twice").wait()
        return [result.rows_filled, t(db).search().select(["id", "twice"]).to_arrow()]

    both.same("refresh_column_async", refresh)
    both.same("add", lambda db: [t(db).add(fruit(2, 3)).version, t(db).search().select(["id", "twice"]).to_arrow()])
    both.same("refresh again", refresh)
    both.same("refresh without anything to do", refresh)
    both.same("refresh of another column", lambda db: t(db).refresh_column_async("text").wait())
    both.same("write to it", lambda db: t(db).add(pa.table({"id": [7], "twice": [3]})))


KINDS = [schema_changes, computed_columns]
