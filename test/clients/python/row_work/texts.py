"""Random rows, conditions and expressions, which all engines understand alike."""

import pyarrow as pa

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("a", pa.int64()),
        ("b", pa.int64()),
        ("date", pa.int64()),
        ("s", pa.string()),
        ("Mixed", pa.string()),
        ("f", pa.float64()),
        ("flag", pa.bool_()),
        ("point", pa.struct([("a", pa.int64()), ("s", pa.string())])),
    ]
)
NUMBERS = ["a", "b", "date"]
WORDS = ["", " ", "a", "b", "it's", "Mixed", "a b", "日本", "NULL"]
BLANKS = ["", " ", "\n\t"]


def words_of(text):
    return "'" + text.replace("'", "''") + "'"


class Texts:
    """Draws rows and SQL from a generator of random numbers."""

    def __init__(self, rng):
        self.rng = rng

    def rows(self, count, keys=6):
        """Returns rows, whose keys are few, so that they repeat, and some of them null."""
        rng = self.rng
        return pa.Table.from_pylist([self._row(rng.randint(0, keys)) for _ in range(count)], SCHEMA)

    def _row(self, key):
        rng = self.rng

        def maybe(value):
            return None if rng.random() < 0.2 else value

        point = {"a": maybe(rng.randint(-3, 3)), "s": maybe(rng.choice(WORDS))}
        numbers = {name: maybe(rng.randint(-3, 3)) for name in NUMBERS}
        texts = {name: maybe(rng.choice(WORDS)) for name in ("s", "Mixed")}
        floats = {"f": maybe(rng.choice([0.0, -1.5, 2.25]))}
        return {"id": maybe(key), **numbers, **texts, **floats, "flag": maybe(rng.random() < 0.5), "point": maybe(point)}

    def name(self, column):
        """Returns a column in one of its spellings."""
        spellings = [f"`{column}`", f"( `{column}` )"]
        return self.rng.choice(spellings if column == "Mixed" else [column, column, column.upper(), *spellings])

    def number(self, columns, depth=2):
        """Returns an expression of a 64-bit integer that reads only the given columns, and fields of the struct if it is one of them."""
        rng = self.rng
        names = [self.name(column) for column in columns if column in ("id", *NUMBERS)]
        leaves = [str(rng.randint(0, 9)), *names, *names]
        if "point" in columns:
            leaves.append("point.a")
        if depth == 0:
            return rng.choice(leaves)

        def inner():
            return self.number(columns, depth - 1)

        return rng.choice(
            [
                lambda: f"({inner()} + {inner()}) % 1000",
                lambda: f"({inner()} - {inner()})",
                lambda: f"coalesce({inner()}, {inner()})",
                lambda: f"CAST({inner()} AS BIGINT)",
                lambda: f"CAST(length({self.text(columns, 0)}) AS BIGINT)",
                lambda: "CAST(length('a date') AS BIGINT)",
                lambda: rng.choice(leaves),
            ]
        )()

    def text(self, columns, depth=1):
        """Returns an expression of a text; see `number`."""
        rng = self.rng
        names = [self.name(column) for column in columns if column in ("s", "Mixed")]
        leaves = [words_of(rng.choice(WORDS)), *names, *names]
        if "point" in columns:
            leaves.append("point['s']")
        if depth == 0:
            return rng.choice(leaves)
        return rng.choice(
            [
                lambda: f"upper({self.text(columns, depth - 1)})",
                lambda: f"substr(concat({self.text(columns, depth - 1)}, {self.text(columns, depth - 1)}), 1, 8)",
                lambda: f"CAST({self.number(columns, 0)} AS STRING)",
                lambda: rng.choice(leaves),
            ]
        )()

    def value(self, column, columns):
        """Returns an expression for a column that reads only the given columns."""
        rng = self.rng
        if rng.random() < 0.1:
            return "NULL"
        if column in ("id", *NUMBERS):
            return self.number(columns)
        if column in ("s", "Mixed"):
            return self.text(columns)
        if column == "f":
            return f"CAST({self.number(columns, 1)} AS DOUBLE) / 4.0"
        return f"{self.number(columns, 1)} > {self.number(columns, 0)}"

    def term(self):
        rng = self.rng
        every = ["id", *NUMBERS, "s", "Mixed", "point"]
        return rng.choice(
            [
                lambda: f"{self.number(every, 1)} {rng.choice(['=', '<>', '<', '>='])} {self.number(every, 0)}",
                lambda: f"{self.text(every, 0)} {rng.choice(['=', '<>', '<'])} {self.text(every, 0)}",
                lambda: f"{self.name(rng.choice(SCHEMA.names[:-1]))} IS {rng.choice(['', 'NOT '])}NULL",
                lambda: f"id {rng.choice(['', 'NOT '])}IN ({rng.randint(0, 6)}, {rng.randint(0, 6)})",
                lambda: f"a BETWEEN {rng.randint(-3, 0)} AND {rng.randint(0, 3)}",
                lambda: f"s LIKE {words_of(rng.choice(['%a%', 'it_s', '', '%']))}",
                lambda: rng.choice(["flag", "NOT flag", "true", "false", "id > 2", "nope = 1", "id >", "f > 0.0"]),
            ]
        )()

    def condition(self):
        rng = self.rng
        text = self.term()
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            text = f"({text}) {rng.choice(['AND', 'OR', 'AND NOT'])} ({self.term()})"
        return text

    def maybe_blank(self):
        """Returns a condition, None for none, or a blank one."""
        return self.rng.choice([None, self.condition(), self.condition(), self.condition(), self.rng.choice(BLANKS)])
