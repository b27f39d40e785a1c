"""A table with random columns."""

import random

import pyarrow as pa

from .columns import TYPES, VECTOR, array, maybe


class Table:
    """The schema of the table `t`, and random rows for it."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        rng = self.rng
        self.columns = sorted({*rng.sample(sorted(TYPES), rng.randint(1, 7)), *rng.sample(["text", "big text", "point", "tags", "Größe"], 2)} if rng.random() < 0.6 else rng.sample(sorted(TYPES), rng.randint(1, 7)))
        self.next_id = 0
        self.schema = pa.schema([("id", pa.int64()), *((name, TYPES[name][0]) for name in self.columns), ("vector", VECTOR)])
    def rows(self, count, ids=None, schema=None):
        rng = self.rng
        if ids is None:
            ids = list(range(self.next_id, self.next_id + count))
            self.next_id += count
        schema = schema or self.schema
        arrays = []
        for field in schema:
            if field.name == "id":
                values = ids
            elif field.name == "vector":
                values = [maybe(rng, [float(rng.randint(0, 5)), float(rng.randint(0, 5))], 0) for _ in ids]
            elif field.name in TYPES:
                values = [maybe(rng, TYPES[field.name][1](rng)) for _ in ids]
            else:
                values = [None for _ in ids]
            arrays.append(array(values, field.type))
        return pa.Table.from_arrays(arrays, schema=schema)

    def odd_rows(self):
        """Rows whose schema is not quite the table's."""
        rng = self.rng
        rows = self.rows(rng.randint(0, 4))
        change = rng.choice(["reorder", "drop", "extra", "cast", "dup", "batches", "empty", "nullcol", "case", "meta", "dict"])
        names = rows.column_names
        if change == "reorder":
            rng.shuffle(names)
            return rows.select(names), change
        if change == "drop":
            gone = rng.choice(names)
            return rows.drop_columns([gone]), f"{change} {gone}"
        if change == "extra":
            return rows.append_column("extra", pa.array([1] * len(rows), pa.int32())), change
        if change == "cast":
            name = rng.choice(names)
            to = rng.choice([pa.string(), pa.int64(), pa.float64(), pa.large_string(), pa.int8()])
            try:
                at = rows.column_names.index(name)
                return rows.set_column(at, name, rows[name].cast(to)), f"{change} {name} to {to}"
            except Exception:
                return rows, "plain"
        if change == "dup":
            return rows.append_column("id", rows["id"]), change
        if change == "batches":
            return pa.concat_tables([rows, self.rows(0), self.rows(2)]), change
        if change == "empty":
            return rows.slice(0, 0), change
        if change == "nullcol":
            name = rng.choice(names)
            at = rows.column_names.index(name)
            return rows.set_column(at, name, pa.nulls(len(rows))), f"{change} {name}"
        if change == "case":
            name = rng.choice(names)
            return rows.rename_columns([n.upper() if n == name else n for n in names]), f"{change} {name}"
        if change == "meta":
            return rows.replace_schema_metadata({"k": "v"}), change
        name = rng.choice(["id", *({"text"} & {*names})])
        at = rows.column_names.index(name)
        return rows.set_column(at, name, rows[name].combine_chunks().dictionary_encode()), f"{change} {name}"
