"""Tests of texts without a cluster. `test/engines/ray-texts.test.ts` compares them with the import of the gateway."""

import base64
import os
import pickle
import tracemalloc
import unittest
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pyarrow as pa
import pyarrow.fs as fs
from lance.dataset import LanceDataset, write_dataset

from lance_gateway_ray.columns import check_whole
from lance_gateway_ray.files import open_rows
from lance_gateway_ray.imports import chosen_schema, write_files
from lance_gateway_ray.sources import Source
from lance_gateway_ray.texts import lines

TABLE = pa.schema(
    {
        "id": pa.int64(),
        "word": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "vector": pa.list_(pa.float32(), 2),
        "place": pa.struct([("x", pa.float64()), ("tags", pa.list_(pa.string()))]),
    }
)


class TextTest(unittest.TestCase):
    def setUp(self):
        folder = TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)

    def read(self, text, format="csv", table=TABLE):
        path = f"{self.folder}/a.{format}"
        Path(path).write_bytes(text if isinstance(text, bytes) else text.encode())
        with open_rows(fs.LocalFileSystem(), path, format, table) as rows:
            batches = list(rows.batches)
        return [row for batch in batches for row in batch.to_pylist()]

    def refuses(self, text, reason, format="csv", table=TABLE):
        wanted = rf"^{self.folder}/a\.{format}, {reason}.*; an import without --engine ray reads more$"
        with self.subTest(text=text[:80]), self.assertRaisesRegex(ValueError, wanted):
            self.read(text, format, table)

    def test_a_refusal_of_a_worker_reaches_the_driver_with_its_text(self):
        refusal = lines.RefusedError("/a.csv", 7, "no quotes")
        self.assertEqual(str(pickle.loads(pickle.dumps(refusal))), str(refusal))
        self.assertRegex(str(refusal), "^/a.csv, line 7: no quotes; ")

    def test_cells_are_values_of_the_columns(self):
        text = '\ufeffword;id;vector\r\n"a;b";1;"[0.5,2]"\r\n\r\n"";;\r\n"c\r\nd";-2;'
        rows = [("a;b", 1, [0.5, 2]), ("", None, None), ("c\r\nd", -2, None)]
        self.assertEqual([tuple(row.values()) for row in self.read(text)], rows)

    def test_an_empty_last_cell_is_null_without_a_line_feed(self):
        self.assertEqual(self.read('id,word\n"1",'), [{"id": 1, "word": None}])

    def test_members_are_values_of_the_columns(self):
        text = '{"id":1,"place":{"tags":["\\ud83d\\ude00",null]},"vector":[1,2.5]}\r\n\n{"at":"2026-05-04T13:02:01+02:00"}'
        [first, second] = self.read(text, "jsonl")
        self.assertEqual((first["place"], first["vector"]), ({"x": None, "tags": ["😀", None]}, [1, 2.5]))
        self.assertEqual(second["at"].isoformat(), "2026-05-04T11:02:01+00:00")
        self.assertEqual([second[name] for name in ("id", "word", "vector", "place")], [None] * 4)

    def test_rows_of_another_form_are_refused_by_their_line(self):
        for text, reason in (
            ("", "line 1: the file is empty"),
            ("\ufeff", "line 1: the file is empty"),
            ("\ufeff\n", "line 1: the file is empty"),
            ("id,word\n1,a\n2\n", "line 3: the row has 1 cells, and the first line names 2"),
            ('id,word\n1,"a\nb"\n2,c,d\n', "line 4: the row has 3 cells"),
            ('id,word\n1,"a\n2,b\n', "line 2: a quote of this row is not closed"),
            ('id,word\n1,"a"b\n', "line 2: quotes are read around whole cells alone"),
            ('id,word\n1,a "b"\n', "line 2: quotes are read around whole cells alone"),
            ("id,word\r1,a\r", "line 1: quotes .* carriage returns before line feeds"),
            ("id,word\n1,a\r", "line 2: quotes .* carriage returns before line feeds"),
            ('id,word\n1,a""b\n', "line 2: quotes are read around whole cells alone"),
            ('id,word\n1,"a" "b"\n', "line 2: quotes are read around whole cells alone"),
            ("id,word" + ",x" * 1_000_000 + "\n", "line 1: 1000002 columns are named, and the table has 5"),
            ("id,word\n" + "," * 1_000_000 + "\n", "line 2: the row has 1000001 cells, and the first line names 2"),
            (b"id,word\n1,a\n2,\xe9\n", "line 3: byte 3 is not UTF-8"),
            ("id\n1\n".encode("utf-16"), "line 1: the text is not in UTF-8"),
            ("id,word,at,vector,place,other\n1,a,,,,\n", "line 1: the table has no column 'other'"),
            ("id,other\n1,a\n", "line 1: the table has no column 'other'"),
            ("id,id\n1,2\n", "line 1: 'id' is not read as the name of a column"),
            ("id, word\n1,a\n", "line 1: ' word' is not read as the name"),
            ("id,\n1,a\n", "line 1: None is not read as the name"),
        ):
            self.refuses(text, reason)
        for text, reason in (
            ('{"id":1}{"id":2}\n', "line 1: column 9: Extra data"),
            ('{"id":1}\n{"id":\n2}\n', "line 2: column 7: Expecting value"),
            ('{"id":\r2}\n', "line 1: a carriage return"),
            ("[1]\n", "line 1: this is not an object"),
            ('{"id":1,"id":1}\n', "line 1: the member 'id' occurs twice"),
            ("{" + "".join(f'"{at}":0,' for at in range(200_000)) + '"199999":0}', "line 1: the member '199999' occurs twice"),
            ('\n{"id":NaN}\n', "line 2: NaN is not JSON"),
            ('{"word":"\\ud83d"}\n', "line 1: a text has half of a surrogate pair"),
            ('{"other":1}\n', "line 1: the table has no column 'other'"),
            ('{"id":' + "[" * 100_000 + "\n", "line 1: the value has too many levels"),
        ):
            self.refuses(text, reason, "jsonl")

    def test_values_that_would_change_are_refused_by_their_line_and_column(self):
        for kind, text in (
            (pa.int8(), "128"),
            (pa.int64(), "+1"),
            (pa.int64(), "007"),
            (pa.uint64(), "-1"),
            (pa.float32(), "0.1234567891"),
            (pa.float64(), "0.12345678901234567891"),
            (pa.float64(), "1e400"),
            (pa.float64(), "1e-400"),
            (pa.float64(), " 1"),
            (pa.float16(), "256.2"),
            (pa.float32(), "2097152.2"),
            (pa.decimal128(10, 2), "0.123"),
            (pa.decimal128(20, 4), "340282366920938463463374607431768211457"),
            (pa.decimal128(38, 0), "9" * 39),
            (pa.decimal128(38, 38), "256"),
            (pa.decimal128(38, 38), "0.1" + "0" * 80),
            (pa.decimal128(5, 0), "0." + "9" * 38 + "0"),
            (pa.decimal256(76, 0), "9" * 80),
            (pa.bool_(), "1"),
            (pa.date32(), "2026-02-30"),
            (pa.timestamp("ms"), "2026-05-04T13:02:01.1234"),
            (pa.timestamp("ms"), "2026-05-04T13:02:01Z"),
            (pa.timestamp("ms", "UTC"), "2026-05-04T13:02:01"),
            (pa.time32("s"), "13:02:01.5"),
            (pa.binary(), "QR=="),
        ):
            table = pa.schema({"a": kind})
            self.refuses(f"a\n\n{text}\n", rf"line 3: column 'a': {text!r} is not read as".replace("+", r"\+"), table=table)
        for kind, text in (
            (pa.int64(), '"1"'),
            (pa.int64(), "1.0"),
            (pa.string(), "1"),
            (pa.bool_(), "1"),
            (pa.float64(), '"1"'),
            (pa.list_(pa.int8()), "[1,128]"),
            (pa.list_(pa.float32(), 2), "[1]"),
            (pa.list_(pa.float32(), 2), "[1,null]"),
            (pa.struct({"x": pa.int8()}), '{"y":1}'),
        ):
            self.refuses(f'{{"a":null}}\n{{"a":{text}}}\n', "line 2: column 'a': .* is not read as", "jsonl", pa.schema({"a": kind}))

    def test_decimals_have_all_digits_of_their_type(self):
        for kind, text in (
            (pa.decimal128(38, 38), "-0." + "9" * 38),
            (pa.decimal128(38, 0), "9" * 38),
            (pa.decimal128(20, 4), "9" * 16 + ".9999"),
            (pa.decimal128(20, 4), "1.5" + "0" * 20),
            (pa.decimal128(5, 0), "-5." + "0" * 33),
            (pa.decimal256(76, 38), "9" * 38 + "." + "9" * 38),
        ):
            self.assertEqual(self.read(f"a\n{text}\n", table=pa.schema({"a": kind})), [{"a": Decimal(text)}])

    def test_a_missing_value_of_a_column_without_nulls_is_refused_by_its_line(self):
        table = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.list_(pa.int64()), nullable=False)])
        for text, place in (("1,[]\n,[]\n", "line 3: column 'a'"), ("1,[]\n2,\n", "line 3: column 'b'")):
            self.refuses(f"a,b\n{text}", f"{place}: a value is missing", table=table)
        for text, place in (('{"b":[]}', "line 2: column 'a'"), ('{"a":2}', "line 2: column 'b'")):
            self.refuses(f'{{"a":1,"b":[]}}\n{text}\n', f"{place}: a value is missing", "jsonl", table)

    def test_any_number_of_levels_is_refused_by_its_line(self):
        for levels in range(900, 1010):
            value = "[" * levels + "]" * levels
            self.refuses(f'{{"word":"\\u0041","place":{value}}}\n', "line 1: ", "jsonl")
            self.refuses(f"place\n{value}\n", "line 2: column 'place': ")

    def test_null_vectors_take_the_memory_of_their_column_alone(self):
        table = pa.schema({"v": pa.list_(pa.float32(), 4096), "id": pa.int64()})
        rows = self.read('{"v":null}\n' + '{"v":[' + "0.5," * 4095 + '2]}\n{"id":1}\n', "jsonl", table)
        self.assertEqual([row["v"] and row["v"][4094:] for row in rows], [None, [0.5, 2], None])
        self.refuses('{}\n{}\n{"v":[' + "0.5," * 4095 + '"x"]}\n', "line 3: column 'v': 'x'", "jsonl", table)
        with TemporaryDirectory() as folder:
            Path(f"{folder}/a.jsonl").write_text("{}\n" * 8192)
            tracemalloc.start()
            self.addCleanup(tracemalloc.stop)
            with open_rows(fs.LocalFileSystem(), f"{folder}/a.jsonl", "jsonl", table) as opened:
                self.assertEqual(sum(batch.num_rows for batch in opened.batches), 8192)
            self.assertLess(tracemalloc.get_traced_memory()[1], 64 << 20)

    def test_a_file_for_a_new_table_has_all_chosen_columns(self):
        with self.assertRaisesRegex(ValueError, "^a.csv: column 'word' is missing, and --type names it$"):
            check_whole(TABLE.remove(1), TABLE, "a.csv")
        check_whole(TABLE, TABLE, "a.csv")

    def test_an_item_is_refused_by_the_line_of_its_list(self):
        text = '{"a":[]}\n{"a":[1,2]}\n{"a":null}\n{"a":[]}\n{"a":[3,"x"]}\n{"a":[4]}\n'
        self.refuses(text, "line 5: column 'a': 'x'", "jsonl", pa.schema({"a": pa.list_(pa.int64())}))

    def test_columns_that_no_text_fills_are_refused(self):
        table = pa.schema([("a", pa.map_(pa.string(), pa.int8())), pa.field("b", pa.string(), metadata={"lance-encoding:blob": "true"})])
        for name in table.names:
            self.refuses(f"{name}\n1\n", f"line 1: column {name!r} is not filled", table=table)
            self.refuses(f'{{"{name}":"1"}}\n', f"line 1: the table has no column {name!r}", "jsonl", table)

    def test_rows_are_read_across_pieces_and_batches(self):
        with mock.patch.object(lines, "PIECE_BYTES", 7):
            text = "id,word\n" + "".join(f'{at},"é{at}\nx"\n' for at in range(20_000))
            self.assertEqual(self.read(text)[19_999], {"id": 19_999, "word": "é19999\nx"})
            self.refuses(text + "x,y\n", "line 40002: column 'id': 'x'")
            rows = "".join(f'{{"id":{at}}}\n' for at in range(20_000))
            self.assertEqual(len(self.read(rows, "jsonl")), 20_000)
            self.refuses(rows + '{"id":"x"}\n', "line 20001: column 'id': 'x'", "jsonl")

    def test_a_long_row_is_refused(self):
        with mock.patch.object(lines, "LONGEST_ROW", 100), mock.patch.object(lines, "PIECE_BYTES", 50):
            self.refuses("id,word\n1," + "x" * 200 + "\n", "line 2: the line is longer")

    def test_a_refused_text_among_others_names_its_file_and_leaves_the_table(self):
        os.mkdir(f"{self.folder}/in")
        for name, value in (("a", "1"), ("b", "x")):
            Path(f"{self.folder}/in/{name}.csv").write_text(f"id\n{value}\n")
        uri = f"{self.folder}/t.lance"
        write_dataset(pa.table({"id": [1]}), uri)
        source = Source(f"{self.folder}/in/*.csv", f"{self.folder}/in", "csv", {})
        with self.assertRaisesRegex(ValueError, "^/.*/in/b.csv, line 2: column 'id': 'x' is not read as int64"):
            write_files(source.files(), uri, {}, LanceDataset(uri).schema, source, 1)
        self.assertEqual(LanceDataset(uri).count_rows(), 1)

    def test_a_new_table_has_the_columns_that_the_command_has_chosen(self):
        def chosen(schema):
            sink = pa.BufferOutputStream()
            pa.ipc.new_stream(sink, schema).close()
            return chosen_schema({"schema": base64.b64encode(sink.getvalue().to_pybytes()).decode()})

        self.assertTrue(chosen(TABLE).equals(TABLE))
        self.assertIsNone(chosen_schema({}))
        with self.assertRaisesRegex(ValueError, "--type: .* column 'a' of type null"):
            chosen(pa.schema({"a": pa.null()}))
        with self.assertRaisesRegex(ValueError, "a table from csv needs the types of its columns"):
            self.read("a\n1\n", table=None)


if __name__ == "__main__":
    unittest.main()
