"""Tests of backfills without a cluster: `python -m unittest discover python/tests`."""

import os
import unittest
from tempfile import TemporaryDirectory

import pyarrow as pa
from lance.dataset import LanceDataset, LanceOperation, write_dataset

from lance_gateway_ray.backfill import Fill, fill_fragments
from lance_gateway_ray.spread import split_fragments

ROWS = pa.table({"id": pa.array(range(6)), "word": ["a", None, "c", "d", None, "f"], "size": pa.array([9] * 6)})


class BackfillTest(unittest.TestCase):
    def setUp(self):
        folder = TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.uri = os.path.realpath(folder.name) + "/t.lance"

    def fill(self, dataset, value, *, column="size", where=None):
        fill = Fill(column, value, where, dataset.version)
        parts = split_fragments(dataset, 1)
        return fill_fragments([each for part in parts for each in part], self.uri, {}, fill)

    def commit(self, dataset, filled):
        operation = LanceOperation.Update(
            updated_fragments=[each.fragment for each in filled],
            fields_modified=filled[0].fields,
            update_mode="rewrite_columns",
        )
        return LanceDataset.commit(self.uri, operation, read_version=dataset.version)

    def column(self, dataset, name="size"):
        return dataset.to_table().column(name).to_pylist()

    def test_a_column_of_all_fragments_is_written_again(self):
        dataset = write_dataset(ROWS, self.uri, max_rows_per_file=3)
        filled = self.fill(dataset, "cast(id * 2 as bigint)")
        self.assertEqual([each.rows for each in filled], [3, 3])
        made = self.commit(dataset, filled)
        self.assertEqual(self.column(made), [0, 2, 4, 6, 8, 10])
        self.assertEqual(self.column(made, "word"), ROWS.column("word").to_pylist())
        self.assertEqual([len(each.metadata.files) for each in made.get_fragments()], [2, 2])

    def test_rows_outside_of_the_condition_and_deleted_ones_stay(self):
        dataset = write_dataset(ROWS, self.uri, max_rows_per_file=3)
        dataset.delete("id = 1")
        filled = self.fill(dataset, "cast(100 / (id - 1) as bigint)", where="id > 1 and id < 4")
        made = self.commit(dataset, filled)
        self.assertEqual(sum(each.rows for each in filled), 2)
        self.assertEqual(self.column(made), [9, 100, 50, 9, 9])

    def test_a_column_without_files_gets_its_values(self):
        dataset = write_dataset(ROWS, self.uri, max_rows_per_file=3)
        dataset.add_columns([pa.field("length", pa.int32())])
        filled = self.fill(dataset, "character_length(word)", column="length", where="id <> 2")
        self.assertEqual(sum(each.rows for each in filled), 5)
        self.assertEqual(self.column(self.commit(dataset, filled), "length"), [1, None, None, 1, None, 1])

    def test_an_index_of_the_column_covers_no_rows_with_other_values(self):
        dataset = write_dataset(ROWS, self.uri, max_rows_per_file=3)
        for column in ("id", "size"):
            dataset.create_scalar_index(column, "BTREE")
        made = self.commit(dataset, self.fill(dataset, "id", where="id < 2"))
        covered = {index["fields"][0]: index["fragment_ids"] for index in made.list_indices()}
        self.assertEqual(covered, {"id": {0, 1}, "size": {1}})
        self.assertEqual(made.to_table(filter="size = 1").num_rows, 1)

    def test_values_of_another_type_and_nulls_that_the_column_has_not_are_refused(self):
        schema = pa.schema([("id", pa.int64()), ("word", pa.string()), pa.field("size", pa.int64(), nullable=False)])
        dataset = write_dataset(ROWS.cast(schema), self.uri)
        with self.assertRaisesRegex(ValueError, "the values are string, and the column 'size' is int64"):
            self.fill(dataset, "word")
        with self.assertRaisesRegex(ValueError, "is not nullable"):
            self.fill(dataset, "nullif(id, 2)")


if __name__ == "__main__":
    unittest.main()
