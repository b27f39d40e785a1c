"""Registers functions and secrets with LanceDB's client, and fills columns by them on Ray. Arguments: the address of a gateway."""

import json

import lancedb
import pyarrow as pa
from lancedb import EnvVarSecret, col, udf
from support import uri

db = lancedb.connect("db://any", api_key="unused", host_override=uri)

ROWS = 3000
VALUE = "a-secret-value-of-the-session"


@udf
def shout(word: str) -> str:
    if word == "bad":
        raise ValueError(f"cannot shout {word}")
    return word.upper() + "!"


@udf
class scale:
    def __init__(self, factor: float, offset: float = 0.5):
        self.factor, self.offset = factor, offset

    def __call__(self, small: int) -> float:
        return small * self.factor + self.offset


@udf(output_schema=pa.list_(pa.float32(), 3), input_schema=pa.schema([pa.field("small", pa.int64(), nullable=True)]))
def embed(small):
    return [0.0, 0.5, float(small or 0)]


@udf(env={"MODE": "loud"})
def token_length(word: str) -> int:
    import os

    return len(os.environ["TOKEN"]) * 1000 + len(os.environ["MODE"])


def refused(work, text):
    try:
        work()
    except Exception as error:
        assert text in str(error), error
        return
    raise AssertionError(f"nothing was refused: {text}")


def rows_of(table, *columns):
    return sorted(table.search().select(["id", *columns]).limit(ROWS * 2).to_list(), key=lambda row: row["id"])


table = db.create_table(
    "words",
    [{"id": at, "small": at % 50, "word": "bad" if at in (5, 1500) else f"w{at}"} for at in range(ROWS)],
)
table.add([{"id": ROWS + at, "small": at, "word": "later"} for at in range(10)])

version = db.create_function(shout)
assert (version.name, version.version, version.disabled) == ("shout", "1", False), version
again = db.create_function(shout)
assert (again.object_id, again.version) == (version.object_id, "1"), again
assert db.get_function("shout", version="1") == version
assert [(each.name, each.version) for each in db.list_functions()] == [("shout", "1")]

table.add_columns({"loud": version(word=col("word"))})
job = table.refresh_column_async("loud")
result = job.wait()
assert (result.rows_assigned, result.rows_failed, result.rows_remaining) == (ROWS + 8, 2, 2), result
found = rows_of(table, "word", "loud")
assert len(found) == ROWS + 10
for row in found:
    assert row["loud"] == (None if row["word"] == "bad" else row["word"].upper() + "!"), row
errors = table.function_errors(column="loud")
assert sorted((each.error_type, each.error_message, each.row_offset, each.function) for each in errors.records) == [
    ("ValueError", "cannot shout bad", 5, "shout"),
    ("ValueError", "cannot shout bad", 1500, "shout"),
], errors.records
assert [each.job_id for each in errors.records] == [job.id] * 2 and not errors.truncated
assert table.function_errors(job_id="other").records == []

table.add([{"id": ROWS + 20, "small": 1, "word": "new", "loud": None}])
result = table.refresh_column_async("loud").wait()
assert (result.rows_assigned, result.rows_failed) == (1, 2), result

scaled = db.create_function(scale)
table.add_columns({"scaled": scaled(small=col("small"), factor=2.0)})
assert table.refresh_column_async("scaled").wait().rows_failed == 0
assert all(row["scaled"] == row["small"] * 2 + 0.5 for row in rows_of(table, "small", "scaled"))

vector = db.create_function(embed)
table.add_columns({"vector": vector(small=col("small"))})
table.refresh_column_async("vector").wait()
assert all(row["vector"] == [0.0, 0.5, row["small"]] for row in rows_of(table, "small", "vector"))

refused(
    lambda: db.create_function(token_length, secrets=[EnvVarSecret("token", "TOKEN")]), "does not exist"
)
db.create_secret("token", "former")
refused(lambda: db.create_secret("token", "other"), "already exists")
db.alter_secret("token", VALUE)
assert db.list_secrets() == ["token"]
described = db.describe_secret("token")
assert described.name == "token" and described.updated_at_millis > described.created_at_millis > 0
secret = db.create_function(token_length, secrets=[EnvVarSecret("token", "TOKEN")])
table.add_columns({"length": secret(word=col("word"))})
table.refresh_column_async("length").wait()
assert {row["length"] for row in rows_of(table, "length")} == {len(VALUE) * 1000 + 4}

db.drop_secret("token")
refused(lambda: db.describe_secret("token"), "does not exist")
assert db.drop_function("shout", version="1") is True
assert db.drop_function("shout", version="1") is False
refused(lambda: table.refresh_column_async("loud"), "there is no version")
print(json.dumps({"rows": len(rows_of(table, "loud"))}))
