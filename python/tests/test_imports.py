"""Tests of imports without a cluster: `python -m unittest discover python/tests`."""

import os
import unittest
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as parquet
from lance.dataset import LanceDataset, LanceOperation, write_dataset

from lance_gateway_ray import files, imports
from lance_gateway_ray.columns import check_fits, conform, unify
from lance_gateway_ray.files import open_rows
from lance_gateway_ray.gateway import Gateway, RefusedError, Task
from lance_gateway_ray.imports import commit, write_files
from lance_gateway_ray.sources import Source, SourceFile, s3_options
from lance_gateway_ray.spread import split_evenly

ROWS = pa.table({"id": [1, 2, 3], "word": ["a", None, "ü"]})


class ImportTest(unittest.TestCase):
    def setUp(self):
        folder = TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        os.mkdir(f"{self.folder}/in")

    def source(self, pattern="in/*.parquet", format="parquet"):
        return Source(f"{self.folder}/{pattern}", f"{self.folder}/in", format, {})

    def put(self, name, rows=ROWS, **options):
        path = f"{self.folder}/in/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        parquet.write_table(rows, path, **options)
        return path

    def names(self, source):
        return [os.path.relpath(file.path, f"{self.folder}/in") for file in source.files()]

    def test_files_are_found_by_name_pattern_and_folder(self):
        for name in ("b.parquet", "a.parquet", "deep/c.PQ", "deep/_temporary/d.parquet", ".e.parquet", "f.txt"):
            self.put(name)
        self.assertEqual(self.names(self.source("in/a.parquet")), ["a.parquet"])
        self.assertEqual(self.names(self.source()), ["a.parquet", "b.parquet"])
        self.assertEqual(self.names(self.source("in/d*p/*.P*")), ["deep/c.PQ"])
        self.assertEqual(self.names(self.source("in")), ["a.parquet", "b.parquet", "deep/c.PQ"])
        with self.assertRaisesRegex(ValueError, "no files of the format parquet"):
            self.source("in/*.csv").files()

    def test_a_link_out_of_the_location_is_refused(self):
        os.mkdir(f"{self.folder}/other")
        parquet.write_table(ROWS, f"{self.folder}/other/a.parquet")
        os.symlink(f"{self.folder}/other/a.parquet", f"{self.folder}/in/a.parquet")
        with self.assertRaisesRegex(ValueError, "leads out of"):
            self.source().files()

    def test_folders_that_say_more_than_their_files_are_refused(self):
        self.put("day=1/a.parquet")
        for pattern in ("in", "in/*/a.parquet", "in/day=1", "in/day=1/a.parquet"):
            with self.assertRaisesRegex(ValueError, "the folder day=1 has a column"):
                self.source(pattern).files()

    def test_the_files_of_other_tables_are_refused(self):
        for folder, mark in (("d", "_delta_log/0.json"), ("i", "metadata/v1.metadata.json"), ("h", ".hoodie/a")):
            os.mkdir(f"{self.folder}/in/{folder}")
            self.put(f"{folder}/data/a.parquet")
            self.put(f"{folder}/{mark}")
            for pattern in (f"in/{folder}", f"in/{folder}/data", f"in/{folder}/*/a.parquet", f"in/{folder}/data/a.parquet"):
                with self.subTest(pattern), self.assertRaisesRegex(ValueError, "table of Delta, Iceberg or Hudi"):
                    self.source(pattern).files()
        self.put("other/a.parquet")
        Path(f"{self.folder}/in/metadata").write_text("")
        self.assertEqual(self.names(self.source("in/other")), ["other/a.parquet"])

    def test_a_file_under_two_names_is_refused(self):
        os.symlink(self.put("a.parquet"), f"{self.folder}/in/b.parquet")
        with self.assertRaisesRegex(ValueError, "b.parquet and .*a.parquet are the same file"):
            self.source().files()

    def test_options_of_a_bucket_are_those_of_pyarrow(self):
        options = {"AWS_ACCESS_KEY_ID": "k", "aws_secret_access_key": "s", "endpoint": "http://127.0.0.1:9"}
        self.assertEqual(
            s3_options({**options, "allow_http": "true"}),
            {
                "access_key": "k",
                "secret_key": "s",
                "endpoint_override": "127.0.0.1:9",
                "scheme": "http",
                "force_virtual_addressing": False,
            },
        )

    def test_parts_have_about_the_same_size_in_the_order_of_the_files(self):
        files = [SourceFile(str(at), size) for at, size in enumerate([9, 1, 1, 1, 9, 1])]
        parts = split_evenly(files, 3)
        self.assertEqual([file for part in parts for file in part], files)
        self.assertEqual([[file.size for file in part] for part in parts], [[9], [1, 1, 1], [9, 1]])
        self.assertEqual([len(part) for part in split_evenly(files[:2], 8)], [1, 1])
        empty = [SourceFile("a", 0), SourceFile("b", 0)]
        self.assertEqual([file for part in split_evenly(empty, 2) for file in part], empty)
        self.assertEqual(split_evenly([], 2), [])

    def test_files_of_a_new_table_have_the_same_columns(self):
        strict = pa.schema([pa.field("id", pa.int64(), False), pa.field("word", pa.string())])
        made = unify([("a", strict.with_metadata({"pandas": "{}"})), ("b", ROWS.schema)])
        self.assertTrue(made.field("id").nullable)
        self.assertIsNone(made.metadata)
        for other, reason in (
            (pa.schema({"id": pa.int32(), "word": pa.string()}), "b: column 'id' is int32, and in a int64"),
            (pa.schema({"id": pa.int64(), "text": pa.string()}), "b: column 'text' is not in the table"),
            (pa.schema({"word": pa.string()}), "b: column 'id' is missing"),
            (pa.schema({"id": pa.int64()}), "b: column 'word' is missing, and in a"),
        ):
            with self.assertRaisesRegex(ValueError, reason):
                unify([("a", strict), ("b", other)])

    def test_columns_that_a_new_table_may_not_keep_are_refused(self):
        for kind in (
            pa.dictionary(pa.int32(), pa.string()),
            pa.map_(pa.string(), pa.int32()),
            pa.list_(pa.string(), 2),
            pa.timestamp("us", "+05:30"),
            pa.null(),
        ):
            with self.assertRaisesRegex(ValueError, "a: .* column 'c' of type"):
                unify([("a", pa.schema({"c": kind}))])

    def test_values_are_kept_or_refused_by_file_and_column(self):
        def cast(values, kind):
            table = pa.schema({"c": kind})
            batch = pa.record_batch({"c": values})
            check_fits(batch.schema, table, "f")
            return conform(batch, table, "f").column(0)

        self.assertEqual(cast(pa.array([1, None], pa.int64()), pa.int8()).to_pylist(), [1, None])
        self.assertEqual(cast(pa.array(["a", "b"]).dictionary_encode(), pa.large_string()).to_pylist(), ["a", "b"])
        self.assertEqual(cast(pa.array([[1.0, 2.0]], pa.list_(pa.float32())), pa.list_(pa.float32(), 2)).type.list_size, 2)
        self.assertEqual(cast(pa.array([0.1], pa.float32()), pa.float64()).to_pylist(), [pa.scalar(0.1, pa.float32()).as_py()])
        for values, kind, reason in (
            (pa.array([300]), pa.int8(), "f: column 'c': Integer value 300"),
            (pa.array([-1]), pa.uint64(), "f: column 'c'"),
            (pa.array([1.5]), pa.int64(), "f: column 'c' is double, in the table int64"),
            (pa.array([0.1]), pa.float32(), "f: column 'c' is double, in the table float"),
            (pa.array([1]), pa.string(), "f: column 'c' is int64"),
            (pa.array([datetime(1, 1, 1)], pa.timestamp("us")), pa.timestamp("ns"), "f: column 'c'"),
            (pa.array([1], pa.timestamp("us", "UTC")), pa.timestamp("us"), "f: column 'c' is timestamp"),
            (pa.array([[1.0]], pa.list_(pa.float32())), pa.list_(pa.float32(), 2), "f: column 'c'"),
        ):
            with self.subTest(reason), self.assertRaisesRegex(ValueError, reason):
                cast(values, kind)

    def test_missing_columns_are_null_and_nulls_are_refused_where_none_may_be(self):
        table = pa.schema([pa.field("id", pa.int64(), False), pa.field("more", pa.string())])
        batch = pa.record_batch({"id": pa.array([1, None])})
        check_fits(batch.schema, table, "f")
        self.assertEqual(conform(batch.slice(0, 1), table, "f").to_pylist(), [{"id": 1, "more": None}])
        with self.assertRaisesRegex(ValueError, "f: column 'id' has a null"):
            conform(batch, table, "f")

    def test_other_files_and_times_of_96_bits_are_refused(self):
        Path(f"{self.folder}/in/a.parquet").write_text("id,word")
        times = pa.table({"at": pa.array([datetime(2020, 1, 1)], pa.timestamp("ns"))})
        old = self.put("b.parquet", times, use_deprecated_int96_timestamps=True)
        system = self.source().open()
        for path, reason in ((f"{self.folder}/in/a.parquet", "is not a file of the format parquet"), (old, "'at' has times")):
            with self.assertRaisesRegex(ValueError, reason), open_rows(system, path, "parquet"):
                pass

    def test_files_become_fragments_that_belong_to_no_version(self):
        self.put("a.parquet")
        self.put("b.parquet")
        uri = f"{self.folder}/t.lance"
        fragments = write_files(self.source().files(), uri, {}, ROWS.schema, self.source(), None)
        self.assertEqual([fragment.physical_rows for fragment in fragments], [6])
        self.assertFalse(os.path.exists(f"{uri}/_versions"))
        made = LanceDataset.commit(uri, LanceOperation.Overwrite(ROWS.schema, fragments))
        self.assertEqual(made.to_table().to_pylist(), ROWS.to_pylist() * 2)

    def test_a_file_that_changes_while_it_is_imported_is_refused(self):
        path = self.put("a.parquet", pa.table({"id": list(range(20000))}))
        schema = pa.schema({"id": pa.int64()})
        self.put("b.parquet", pa.table({"id": [1]}))
        message = "a.parquet was changed while it was imported"

        def grow():
            parquet.write_table(pa.table({"id": list(range(30000))}), path)

        def touch():
            os.utime(path, ns=(0, 0))

        for change in (grow, touch, lambda: Path(path).write_bytes(b"cut"), lambda: os.remove(path)):
            found = self.source().files()
            rows = imports.read_files(found, schema, self.source())
            next(rows)
            change()
            with self.assertRaisesRegex(ValueError, message):
                list(rows)
            grow()
        # Workers begin after the listing.
        found = self.source().files()
        touch()
        with self.assertRaisesRegex(ValueError, message):
            list(imports.read_files(found, schema, self.source()))
        self.assertEqual(len(list(imports.read_files(self.source().files(), schema, self.source()))), 5)

    def test_a_failure_while_rows_are_written_names_the_file(self):
        rows = pa.table({"id": pa.array([1, 2**40])})
        self.put("a.parquet", rows)
        uri = f"{self.folder}/t.lance"
        write_dataset(pa.table({"id": pa.array([1], pa.int32())}), uri)
        schema = LanceDataset(uri).schema
        with self.assertRaisesRegex(ValueError, "^/.*/in/a.parquet: column 'id': Integer value"):
            write_files(self.source().files(), uri, {}, schema, self.source(), 1)
        self.assertEqual(LanceDataset(uri).count_rows(), 1)

    def test_files_and_streams_of_arrow_are_read(self):
        for name, opened in (("a.arrow", ipc.new_file), ("a.arrows", ipc.new_stream)):
            with opened(f"{self.folder}/in/{name}", ROWS.schema) as writer:
                writer.write_table(ROWS)
            with open_rows(self.source().open(), f"{self.folder}/in/{name}", name.split(".")[1]) as rows:
                self.assertEqual(pa.Table.from_batches(rows.batches, rows.schema), ROWS)

    def rows_of(self, path, format):
        with open_rows(self.source().open(), path, format) as rows:
            return pa.Table.from_batches(rows.batches, rows.schema)

    def stream(self, name, *tables):
        """Writes a stream of a batch for each table; returns its path and the positions after each batch."""
        path, ends = f"{self.folder}/in/{name}", []
        with pa.OSFile(path, "wb") as file, ipc.new_stream(file, ROWS.schema) as writer:
            for table in tables:
                writer.write_table(table)
                ends.append(file.tell())
        return path, ends

    def test_a_stream_that_is_cut_or_goes_on_is_refused(self):
        path, ends = self.stream("a.arrows", ROWS, ROWS)
        whole = Path(path).read_bytes()
        self.assertEqual(self.rows_of(path, "arrows").num_rows, 6)
        for changed in (whole[: ends[0]], whole[: ends[1]], whole[: ends[0] - 8], whole + whole, whole + b"\0"):
            Path(path).write_bytes(changed)
            with self.subTest(len(changed)), self.assertRaisesRegex(ValueError, f"^{path} is "):
                self.rows_of(path, "arrows")
        empty, _ = self.stream("b.arrows")
        self.assertEqual(self.rows_of(empty, "arrows").num_rows, 0)

    def test_a_stream_with_values_like_its_end_mark_is_refused_without_it(self):
        path = f"{self.folder}/in/a.arrows"
        rows = pa.table({"id": pa.array([-1, 0] * 8, pa.int32())})
        with pa.OSFile(path, "wb") as file, ipc.new_stream(file, rows.schema) as writer:
            writer.write_table(rows)
            end = file.tell()
        cut = Path(path).read_bytes()[:end]
        self.assertTrue(cut.endswith(b"\xff\xff\xff\xff\0\0\0\0"))
        Path(path).write_bytes(cut)
        with self.assertRaisesRegex(ValueError, "not one whole stream"):
            self.rows_of(path, "arrows")

    def test_values_that_are_not_sound_are_refused(self):
        words = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
        for name, opened in (("a.arrow", ipc.new_file), ("a.arrows", ipc.new_stream)):
            path, batch = f"{self.folder}/in/{name}", pa.record_batch({"word": words})
            with opened(path, batch.schema) as writer:
                writer.write_batch(batch)
            with self.assertRaisesRegex(ValueError, f"^{path} is corrupt: .*UTF8"):
                self.rows_of(path, name.split(".")[1])

    def test_a_corrupt_file_is_refused_by_its_path_and_a_failing_network_is_not(self):
        path = self.put("a.parquet", pa.table({"id": list(range(10_000))}), compression="snappy")
        sound = Path(path).read_bytes()
        Path(path).write_bytes(sound[:40] + b"\xff" * 400 + sound[440:])
        with self.assertRaisesRegex(ValueError, f"^{path} is corrupt"):
            self.rows_of(path, "parquet")
        failures = (OSError("AWS Error NETWORK_CONNECTION during GetObject"), OSError(5, "input"))
        for failure in failures:
            with mock.patch.dict(files.OPENERS, parquet=mock.Mock(side_effect=failure)):
                with self.assertRaises(OSError):
                    self.rows_of(path, "parquet")

    def test_a_file_with_other_rows_than_it_says_is_refused(self):
        found = files.RowFile(ROWS.schema, iter(ROWS.to_batches()), 4)
        with mock.patch.dict(files.OPENERS, parquet=lambda *_: found):
            with self.assertRaisesRegex(ValueError, "has 3 rows, and says 4"):
                self.rows_of(self.put("a.parquet"), "parquet")

    def test_rows_are_written_for_the_version_that_the_driver_has_read(self):
        self.put("a.parquet")
        uri = f"{self.folder}/t.lance"
        write_dataset(ROWS, uri)
        table = LanceDataset(uri)
        fields = [file.fields for file in table.get_fragments()[0].metadata.files]
        table.drop_columns(["word"])
        table.add_columns({"word": "cast('x' as string)"})
        [made] = write_files(self.source().files(), uri, {}, ROWS.schema, self.source(), 1)
        self.assertEqual([file.fields for file in made.files], fields)

    def test_a_refused_commit_is_a_success_if_the_gateway_has_one_of_the_job(self):
        gateway = mock.create_autospec(Gateway, instance=True)
        task = Task("import_files", "/t", {"mark": "m"})
        with mock.patch.object(imports.LanceDataset, "commit", side_effect=RefusedError(400, "twice")):
            gateway.describe_task.return_value = Task("import_files", "/t", {"committed": {"rows": 3, "version": 2}})
            self.assertEqual(commit(task, gateway, None, ROWS.schema, []), {"rows": 3, "version": 2})
            gateway.describe_task.return_value = Task("import_files", "/t", {})
            with self.assertRaises(RefusedError):
                commit(task, gateway, None, ROWS.schema, [])


if __name__ == "__main__":
    unittest.main()
