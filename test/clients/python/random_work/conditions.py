"""Random conditions and expressions."""

import datetime as dt
import math
import re

from .columns import TYPES
from .table import Table


def quoted(name):
    return f"`{name}`" if name != name.lower() or not name.isidentifier() or name in ("select",) else name


def literal(rng, name, value):
    if value is None or isinstance(value, (list, dict)):
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        if math.isnan(value):
            return "CAST('NaN' AS DOUBLE)"
        return f"CAST('{value}' AS DOUBLE)" if math.isinf(value) else repr(value)
    if isinstance(value, dt.datetime):
        return f"timestamp '{value.replace(tzinfo=None)}'"
    if isinstance(value, dt.date):
        return f"date '{value}'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return str(value)


class Conditions(Table):
    """Conditions on the columns of a table, most of which are good."""

    def fits(self, text):
        """Whether a text names no column that the table lacks."""
        return not any(re.search(rf"\b{name}\b", text) for name in TYPES if name not in self.columns and name not in ("at", "three", "select", "view", "long"))

    def term(self):
        for _ in range(20):
            text = self.any_term()
            if self.fits(text) or self.rng.random() < 0.02:
                return text
        return "id > 1"

    def any_term(self):
        rng = self.rng
        name = rng.choice(["id", *self.columns])
        column = quoted(name)
        kind = rng.randint(0, 15)
        value = TYPES[name][1](rng) if name in TYPES else rng.randint(0, 20)
        if kind < 5:
            return f"{column} {rng.choice(['=', '!=', '<', '>=', '<>', '>'])} {literal(rng, name, value)}"
        if kind == 5:
            return f"{column} IS {rng.choice(['', 'NOT '])}NULL"
        if kind == 6:
            return f"{column} {rng.choice(['', 'NOT '])}IN ({literal(rng, name, value)}, {literal(rng, name, value)})"
        if kind == 7:
            return f"CAST({column} AS {rng.choice(['STRING', 'BIGINT', 'DOUBLE', 'DATE', 'TIMESTAMP', 'BOOLEAN'])}) = {rng.choice(['1', chr(39) + 'a' + chr(39), 'true'])}"
        if kind == 8:
            return rng.choice(["point.x > 3", "point.`y z` = 'it''s'", "point.`in`.w > 0", "point['x'] = 1", "point.nope = 1", "`point.x` > 1"])
        if kind == 9:
            return f"{column} LIKE {rng.choice([chr(39) + '%a%' + chr(39), chr(39) + 'a!%' + chr(39), '1', 'NULL'])}"
        if kind == 10:
            return rng.choice(["array_has(tags, 'it''s')", "array_length(tags) > 1", "tags[1] = 'NULL'", "array_contains(`large list`, 1)", "cardinality(nested) > 1"])
        if kind == 11:
            return f"id BETWEEN {rng.randint(0, 9)} AND {rng.randint(5, 30)}"
        if kind == 12:
            return rng.choice(["true", "false", "1", "NULL", "1 = 1", "id % 2 = 0", "id / 0 = 1", "_rowoffset = 1", "_score > 1", "_distance > 0", "isnan(`Größe`)", "coalesce(text, 'x') = 'x'", "upper(text) = 'NULL'", "regexp_match(text, '^r') is not null", "regexp_like(text, 'a')", "id::string = '1'", "\"id\" = 2", "'id' = 'id'", "ID = 1", "[id] = 1", "t.id = 1", "id = '3'", "id = 3.0", "id > -1e400", "id = 99999999999999999999", "at = '2024-02-29'", "now() > timestamp '2020-01-01'", "random() >= 0", "exists (select 1)", "id in (select 1)", "id = $1", "id = ?", "(id = 1", "id == 1", "id = 1 and", "case when id > 3 then true else false end", "not id", "id and true", "'", "`", "\x00", "id is true", "flag is not false", "flag", "not flag", "id is distinct from 3", "id ilike '1'", "text ilike 'RED%'", "text ~ 'a'", "text || 'x' = 'NULLx'", "length(text) > 3", "date_part('year', at) = 2024", "extract(year from at) = 2024", "arrow_typeof(id) = 'Int64'", "arrow_cast(id, 'Int8') = 1", "u64 = 18446744073709551615", "long = -9223372036854775808", "price = 1.23", "price > 0.5", "interval '1 day' is not null", "day > date '2024-02-28' + interval '1 day'", "bytes = X'00'", "`bytes` = b'x'", "struct(1,2) is not null", "named_struct('a', 1) is not null", "make_array(1)[1] = 1", "color = 'it''s'", "color in ('', 'NULL')"])
        if kind == 13 and rng.random() < 0.1:
            return f"{column} = nope"
        if kind == 14:
            return f"{rng.choice(['lower', 'abs', 'length', 'md5', 'trim', 'char_length', 'reverse'])}({column}) = {literal(rng, name, value)}"
        return f"{column} {rng.choice(['=', '<'])} {quoted(rng.choice(['id', *self.columns]))}"

    def predicate(self):
        rng = self.rng
        terms = [self.term() for _ in range(rng.choice([1, 1, 1, 2, 2, 3]))]
        text = terms[0]
        for term in terms[1:]:
            text = f"({text}) {rng.choice(['AND', 'OR', 'and not', 'or'])} ({term})"
        return text

    def expression(self):
        for _ in range(20):
            text = self.any_expression()
            if self.fits(text) or self.rng.random() < 0.02:
                return text
        return "id"

    def any_expression(self):
        rng = self.rng
        name = quoted(rng.choice(["id", *self.columns]))
        return rng.choice([name, f"{name} IS NULL", f"CAST({name} AS STRING)", "id * 2", "id + 0.5", "'x'", "NULL", "1", f"coalesce({name}, {name})", "upper(text)", "point.x", "nope", "id +", "count(*)", "case when id > 3 then 'a' end", "id > 3", "tags[1]", f"concat({name}, 'x')", "make_array(id, 1)", "struct(id, 2)", "id::int", "vector", "id as x", "*", "cast(id as int) % 3", "date '2024-01-01'", "X'00'", "1e300 * 1e300", "id / 0", "-id"])

    def picked(self):
        """Columns of an answer."""
        rng = self.rng
        kind = rng.randint(0, 4)
        names = ["id", *self.columns, "vector"]
        if kind < 2:
            return None
        if kind == 2:
            return rng.sample(names, rng.randint(1, len(names)))
        if kind == 3:
            return [rng.choice([*names, *names, *(["point.x"] if "point" in names else []), "_rowoffset", "ID", "id", "_distance", "_score"]) for _ in range(rng.randint(1, 3))]
        return dict(sorted({rng.choice(["a", "b c", "id", "", "Ü"]): self.expression() for _ in range(rng.randint(1, 3))}.items()))
