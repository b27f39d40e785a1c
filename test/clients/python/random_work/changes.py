"""Random changes; each method returns a name, the work and whether it may change the table."""

import pyarrow as pa
from beside import WAIT
from lancedb.index import FTS, Bitmap, BTree, LabelList

from .columns import TYPES
from .conditions import Conditions


class Changes(Conditions):
    """Changes of rows, columns, versions and indices."""

    def do_add(self):
        rows = self.rows(self.rng.randint(0, 6))
        return f"add {len(rows)}", lambda t, db: t.add(rows), True

    def do_odd_add(self):
        rows, change = self.odd_rows()
        mode = self.rng.choice(["append", "append", "overwrite"])
        bad = self.rng.choice([{}, {}, {"on_bad_vectors": "drop"}])
        return f"{mode} {change} {bad}", lambda t, db: t.add(rows, mode=mode, **bad), True

    def do_overwrite(self):
        rows = self.rows(self.rng.randint(0, 8))
        return f"overwrite {len(rows)}", lambda t, db: t.add(rows, mode="overwrite"), True

    def do_delete(self):
        where = f"({self.predicate()}) and id % 3 = {self.rng.randint(0, 2)}" if self.rng.random() < 0.7 else self.predicate()
        return f"delete {where}", lambda t, db: t.delete(where), True

    def do_update(self):
        rng = self.rng
        where = rng.choice([None, self.predicate(), self.predicate()])
        if rng.random() < 0.5:
            name = rng.choice([*self.columns, "id", "vector", "nope"])
            values = {name: TYPES[name][1](rng) if name in TYPES else [1.0, 2.0] if name == "vector" else 3}
            if name == "id":
                values = {"id": rng.randint(0, 30)}
            return f"update {where!r} {values}", lambda t, db: t.update(where=where, values=values), True
        values = {rng.choice([*self.columns, "nope", "point.x"]): self.expression()}
        return f"update {where!r} sql {values}", lambda t, db: t.update(where=where, values_sql=values), True

    def do_merge(self):
        rng = self.rng
        if rng.random() < 0.3:
            rows, change = self.odd_rows()
        else:
            rows, change = self.rows(0, rng.sample(range(self.next_id + 5), rng.randint(1, 4))), "plain"
        if len(rows) == 0:
            return self.do_count()
        on = rng.choice(["id", "id", "id", ["id", rng.choice(self.columns)], rng.choice(self.columns), "nope", []])
        steps = rng.choice(["u", "i", "ui", "ui", "ui", "uc", "d", "uid", "dc", ""])
        where = rng.choice(["source.id > 3", "target.id > 3", "target.text = source.text", "nope", "id > 3", "target.`Größe` > 0"])
        source_where = self.predicate()

        def work(t, db):
            merge = t.merge_insert(on)
            if "u" in steps:
                merge = merge.when_matched_update_all(where=where if "c" in steps else None)
            if "i" in steps:
                merge = merge.when_not_matched_insert_all()
            if "d" in steps:
                merge = merge.when_not_matched_by_source_delete(source_where if "c" in steps else None)
            return merge.execute(rows)

        return f"merge {change} {len(rows)} on {on} {steps} {where if 'uc' in steps else source_where if 'dc' in steps else ''}", work, True

    def do_columns(self):
        rng = self.rng
        kind = rng.randint(0, 2)
        if kind < 2:
            new = {rng.choice(["c1", "c 2", "id", "C3", "point.c", "c`4"]): self.expression()}
            return f"add_columns {new}", lambda t, db: t.add_columns(new), True
        name = rng.choice(sorted(TYPES))
        field = pa.field(rng.choice(["n1", "n 2", name]), TYPES[name][0], nullable=rng.random() < 0.8)
        return f"add_columns {field}", lambda t, db: t.add_columns(field), True

    def do_alter(self):
        rng = self.rng
        path = rng.choice([*self.columns, "id", "vector", "c1", "n1", "point.x", "point.in.w", "nope", "points.item.x"])
        change = rng.choice([{"rename": rng.choice(["renamed", "id", "a.b", "Ü ö"])}, {"nullable": rng.random() < 0.5}, {"data_type": rng.choice([pa.string(), pa.int64(), pa.float64(), pa.large_string(), pa.int8(), pa.list_(pa.float16(), 2)])}])
        return f"alter {path} {change}", lambda t, db: t.alter_columns({"path": path, **change}), True

    def do_drop(self):
        rng = self.rng
        names = rng.sample([*self.columns, "c1", "n1", "c 2", "nope", "point.x", "renamed"], rng.randint(1, 2))
        return f"drop_columns {names}", lambda t, db: t.drop_columns(names), True

    def do_history(self):
        rng = self.rng
        kind = rng.randint(0, 3)
        version = rng.randint(0, 8)
        where = self.predicate()
        if kind == 0:
            return f"restore {version}", lambda t, db: t.restore(version), True

        def at(t, db):
            t.checkout(version)
            return [t.count_rows(where), t.schema, t.search().limit(3).to_arrow(), t.version]

        if kind == 1:
            return f"at {version} {where}", at, False

        def restored(t, db):
            t.checkout(version)
            t.restore()
            return t.version

        if kind == 2:
            return f"checkout {version} and restore", restored, True
        return "versions", lambda t, db: [v["version"] for v in t.list_versions()], False

    def do_tag(self):
        rng = self.rng
        name, version = rng.choice(["one", "two", "bad name", "ü", "a/b"]), rng.randint(0, 6)
        return rng.choice(
            [
                (f"tag {name} {version}", lambda t, db: t.tags.create(name, version), True),
                (f"move tag {name} {version}", lambda t, db: t.tags.update(name, version), True),
                (f"delete tag {name}", lambda t, db: t.tags.delete(name), True),
                ("tags", lambda t, db: {n: v["version"] for n, v in t.tags.list().items()}, False),
                (f"at tag {name}", lambda t, db: [t.checkout(name), t.search().to_arrow()][1], False),
            ]
        )

    def do_branch(self):
        rng = self.rng
        name = rng.choice(["side", "other", "a/b"])
        rows, where = self.rows(2), self.predicate()
        return rng.choice(
            [
                (f"branch {name}", lambda t, db: t.branches.create(name).version, True),
                (f"delete branch {name}", lambda t, db: t.branches.delete(name), True),
                ("branches", lambda t, db: sorted(t.branches.list()), False),
                (f"add to branch {name}", lambda t, db: t.branches.checkout(name).add(rows), True),
                (f"delete in branch {name} {where}", lambda t, db: t.branches.checkout(name).delete(where), True),
                (f"scan branch {name} {where}", lambda t, db: t.branches.checkout(name).search().where(where).to_arrow(), False),
                (f"count branch {name} {where}", lambda t, db: t.branches.checkout(name).count_rows(where), False),
            ]
        )

    def do_index(self):
        rng = self.rng
        column = rng.choice([*self.columns, "id", "vector", "point.x", "nope"])
        config = rng.choice([BTree(), BTree(), Bitmap(), LabelList(), FTS(with_position=True), FTS(with_position=True)])
        name = rng.choice(["my index", "ix"])
        replace = rng.choice([True, None])
        kind = rng.randint(0, 5)
        if kind == 0:
            gone = rng.choice(["ix", "my index"])
            return f"drop_index {gone}", lambda t, db: t.drop_index(gone), True
        options = {} if name is None else {"name": name}
        options |= {} if replace is None else {"replace": replace}
        return f"index {column} {type(config).__name__} {options}", lambda t, db: t.create_index(column, config=config, wait_timeout=WAIT, **options), True

    def do_create(self):
        rng = self.rng
        rows, change = self.odd_rows()
        mode, exist_ok = rng.choice([("create", False), ("overwrite", False)])
        return f"create {mode} {exist_ok} {change}", lambda t, db: db.create_table("t", rows, mode=mode, exist_ok=exist_ok).version, True
