"""Compares values of expressions in the gateway's engine with those of the engine of the driver. Argument: the address of a gateway on
this machine."""

import json
import sys
from datetime import date, datetime
from decimal import Decimal

import lancedb
import pyarrow as pa
from lance.dataset import LanceDataset
from support import call, insert, uri

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("a", pa.int32()),
        ("b", pa.int64()),
        ("u", pa.uint16()),
        ("x", pa.float64()),
        ("y", pa.float32()),
        ("s", pa.string()),
        ("t", pa.large_string()),
        ("bytes", pa.binary()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("price", pa.decimal128(12, 2)),
    ]
)

WORDS = [None, "", "a", "Ärger und Öl", " tab\tline\n", "ß", "İstanbul", "e\u0301", "日本語", "x%y_z", "12", "-3.5", "true", "a,b,c", "ﬃ"]

EXPRESSIONS = """
a + 1|a - b|a * b|b / 7|b % 7|x / 3|-a|x * y|a + x|u + 1|u * 300|a / 2 + b % 3|price * 2|price + 1
a = b|a <> 2|a < x|s <= t|a >= -1|not flag|flag and a > 0|flag or s is null|a between -2 and 3
a in (1, 2, 3)|s in ('a', 'ß')|s like 'a%'|s ilike 'Ä%'|s like '%x\\%y%'|s not like '%a%'|s is not null|flag is true|x is null
cast(x as bigint)|cast(a as tinyint)|cast(a as string)|cast(x as string)|cast(y as string)|cast(flag as string)|cast(day as string)|cast(at as string)
try_cast(s as int)|try_cast(s as double)|try_cast(s as boolean)|try_cast(s as decimal(10, 2))|try_cast(s as date)|cast(x as float)|cast(y as double)|cast(a as smallint)
cast(a as decimal(20, 3))|cast(s as binary)|cast(at as date)|cast(price as double)|cast(a as boolean)
coalesce(s, t, 'none')|ifnull(a, 0)|nvl(x, 1.5)|nullif(a, 1)
greatest(a, 1, b)|least(x, y)|abs(a)|abs(x)|ceil(x)|floor(x)|round(x)|round(x, 2)|signum(x)|sqrt(abs(x))|trunc(x)|trunc(x, 1)
ascii(s)|bit_length(s)|btrim(s)|btrim(s, 'a')|char_length(s)|character_length(t)|chr(u + 65)|concat(s, '-', a)|concat_ws(',', s, t)|ends_with(s, 'l')|left(s, 2)
length(s)|lower(s)|upper(s)|lpad(s, 6, '*')|rpad(s, 6)|ltrim(s)|octet_length(s)|repeat(s, 2)|replace(s, 'a', 'bb')|reverse(s)|right(s, 2)|rtrim(s)|split_part(s, ',', 2)
starts_with(s, 'a')|strpos(s, 'r')|substr(s, 2)|substr(s, 2, 2)|substring(s, 2, 3)|to_hex(b)|translate(s, 'abc', 'xy')|trim(s)|s || '!'|s || a|md5(s)|sha256(s)
date_part('year', day)|date_part('dow', at)|date_part('epoch', at)|date_trunc('month', at)|date_trunc('day', day)|upper(lower(t))
""".strip()


def rows():
    found = []
    for at in range(600):
        found.append(
            {
                "id": at,
                "a": None if at % 7 == 3 else (at * 37) % 250 - 120,
                "b": None if at % 11 == 2 else (at * 7919) % 100_003 - 50_000 + 1,
                "u": at % 200,
                "x": None if at % 5 == 1 else [0.1, -2.5, 3.5, 1e15, -1e-7, 123456.789][at % 6] * (at % 17 + 1),
                "y": None if at % 9 == 4 else (at % 97) / 8 - 3,
                "s": WORDS[at % len(WORDS)],
                "t": WORDS[(at * 4 + 1) % len(WORDS)],
                "bytes": bytes([at % 256]),
                "flag": [None, True, False][at % 3],
                "day": date.fromordinal(719_000 + at * 13),
                "at": datetime(1969, 12, 30, 23, 59, 59, 999_999 - at * 7),
                "price": None if at % 8 == 6 else Decimal(at * 125 - 3000).scaleb(-2),
            }
        )
    return pa.Table.from_pylist(found, SCHEMA)


def letters():
    """All characters of Unicode."""
    codes = [code for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    return pa.table({"id": codes, "s": [chr(code) for code in codes]})


def compare(name, expressions):
    path = call(f"table/{name}/describe")["location"].removeprefix("file://")
    # The gateway brings each into the form that its engine computes correctly. The other engine gets it as it is here.
    tried = failed = 0
    table = db.open_table(name)
    dataset = LanceDataset(path)
    for text in expressions:
        own = other = reason = problem = None
        try:
            own = table.search().select({"id": "id", "value": text}).limit(2_000_000).to_arrow().sort_by("id").column("value")
        except Exception as error:
            reason = str(error)[:200]
        try:
            other = dataset.scanner(columns={"id": "id", "value": text}).to_table().sort_by("id").column("value")
        except Exception as error:
            problem = str(error)[:200]
        tried += 1
        failed += reason is not None
        # The gateway refuses a request whose expression its own engine refuses.
        if reason is None:
            assert problem is None, (text, problem)
            assert own.type == other.type, (text, own.type, other.type)
            assert own.equals(other), (text, [(x, y) for x, y in zip(own.to_pylist(), other.to_pylist()) if x != y][:5])
    return tried, failed


def insert_into(name, table):
    call(f"table/{name}/declare", {"properties": {"lance-gateway.upkeep": "off"}})
    insert(name, table)


db = lancedb.connect("db://any", api_key="unused", host_override=uri)
insert_into("values", rows())
insert_into("letters", letters())
tried, failed = compare("values", [text for line in EXPRESSIONS.splitlines() for text in line.split("|")])
more, other = compare("letters", ["lower(s)", "upper(s)", "s ilike 'k'", "s ilike 'ÿ'"])
print(json.dumps({"compared": tried + more, "refused": failed + other}))
