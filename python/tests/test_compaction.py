"""Tests of compactions without a cluster, on a gateway that publishes each version."""

import os
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

import lance
import pyarrow as pa
from lance import LanceDataset
from lance.optimize import Compaction

from lance_gateway_ray.compaction import Commits, Rewrite
from lance_gateway_ray.gateway import RefusedError, Task

FRAGMENTS, ROWS = 5, 100


class Publisher:
    """A gateway that publishes what a driver commits, and remembers what it was made of."""

    def __init__(self, uri):
        self.uri = uri
        self.rewrites = []
        self.before_commit = []
        """What others do before the next commits."""

    def path(self, version):
        return Path(self.uri) / "_versions" / f"{2**64 - 1 - version}.manifest"

    def describe_version(self, version=None):
        found = LanceDataset(self.uri).version if version is None else int(version)
        return {"version": found, "manifest_path": str(self.path(found)).lstrip("/")}

    def commit(self, version, manifest_path, manifest_size, rewrite):
        (self.before_commit.pop(0) if self.before_commit else lambda: None)()
        if self.path(version).exists():
            raise RefusedError(409, "taken")
        os.rename(f"/{manifest_path.lstrip('/')}", self.path(version))
        self.rewrites.append(rewrite)
        return {"version": version, "manifest_path": str(self.path(version)).lstrip("/")}


class CompactionTest(unittest.TestCase):
    def setUp(self):
        directory = TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.uri = f"{directory.name}/t.lance"
        for number in range(FRAGMENTS):
            ids = list(range(number * ROWS, (number + 1) * ROWS))
            lance.write_dataset(pa.table({"id": ids}), self.uri, mode="append")
        self.gateway = Publisher(self.uri)
        self.commits = Commits(Task("compact_table", self.uri, {}), self.gateway)

    def rewritten(self, **options):
        dataset = LanceDataset(self.uri)
        return [Rewrite(part.execute(dataset)) for part in Compaction.plan(dataset, options).tasks]

    def fragments(self):
        return [each.fragment_id for each in LanceDataset(self.uri).get_fragments()]

    def delete(self, filter):
        LanceDataset(self.uri).delete(filter)

    def test_a_rewrite_is_committed_after_deletions_and_says_what_it_has_read(self):
        rewrites = self.rewritten()
        self.delete("id % 10 = 3")
        done = self.commits.commit(rewrites)
        self.assertEqual(done, {"fragments_removed": FRAGMENTS, "fragments_added": 1})
        made = {"read_version": FRAGMENTS, "groups": [{"fragment_ids": list(range(FRAGMENTS))}]}
        self.assertEqual(self.gateway.rewrites, [made, made])
        self.assertEqual(len(self.fragments()), 1)

    def test_a_commit_that_others_overtake_is_tried_on_their_version(self):
        rewrites = self.rewritten()
        self.gateway.before_commit = [lambda: None, lambda: self.delete("id = 7")]
        self.commits.commit(rewrites)
        self.assertEqual(len(self.fragments()), 1)
        self.assertEqual(len(self.gateway.rewrites), 3)

    def test_a_fragment_that_is_gone_is_named_and_not_replaced(self):
        rewrites = self.rewritten()
        self.delete(f"id < {ROWS}")
        self.commits.commit(rewrites)
        self.assertEqual(self.gateway.rewrites[-1]["groups"], [{"fragment_ids": list(range(FRAGMENTS))}])
        self.assertEqual(len(self.fragments()), 1)

    def test_a_rewrite_with_addresses_for_indices_needs_all_its_fragments(self):
        LanceDataset(self.uri).create_scalar_index("id", "BTREE")
        rewrites = self.rewritten()
        self.delete(f"id < {ROWS}")
        with self.assertRaisesRegex(ValueError, "replaced all fragments"):
            self.commits.commit(rewrites)
        self.assertEqual(self.gateway.rewrites, [])

    def test_what_the_gateway_refuses_is_committed_without_the_part_that_it_refuses(self):
        rewrites = self.rewritten(excluded_fragment_ids=[2])
        self.assertEqual([each.ids for each in rewrites], [[0, 1], [3, 4]])
        publish = self.gateway.commit

        def refuse(version, path, size, rewrite):
            if {"fragment_ids": [0, 1]} in rewrite["groups"]:
                raise RefusedError(400, "others have changed columns")
            return publish(version, path, size, rewrite)

        self.gateway.commit = refuse
        done = self.commits.commit(rewrites)
        self.assertEqual(done, {"fragments_removed": 2, "fragments_added": 1})
        self.assertEqual(self.fragments()[:3], [0, 1, 2])

    def test_a_refusal_of_everything_is_the_failure_of_the_work(self):
        rewrites = self.rewritten()

        def refuse(*_):
            raise RefusedError(400, "others have changed columns")

        self.gateway.commit = refuse
        with self.assertRaisesRegex(Exception, "changed columns"):
            self.commits.commit(rewrites)

    def test_a_commit_whose_answer_was_lost_is_done(self):
        rewrites = self.rewritten()
        publish = self.gateway.commit

        def lose(version, path, size, rewrite):
            made = publish(version, path, size, rewrite)
            if len(self.gateway.rewrites) == 2:
                raise OSError("the answer was lost")
            return made

        self.gateway.commit = lose
        self.assertEqual(self.commits.commit(rewrites), {"fragments_removed": FRAGMENTS, "fragments_added": 1})
        self.assertEqual(len(self.gateway.rewrites), 2)

    def test_a_commit_whose_answer_was_lost_is_done_without_the_fragments_that_were_gone_before(self):
        rewrites = self.rewritten(excluded_fragment_ids=[2])
        self.delete(f"id < {2 * ROWS}")
        publish = self.gateway.commit

        def lose(version, path, size, rewrite):
            made = publish(version, path, size, rewrite)
            if len(self.gateway.rewrites) == 2:
                raise RefusedError(409, "the call is repeated, and the version is there")
            return made

        self.gateway.commit = lose
        self.assertEqual(self.commits.commit(rewrites), {"fragments_removed": 2, "fragments_added": 1})
        self.assertEqual(len(self.gateway.rewrites), 2)

    def test_several_fragments_that_are_rewritten_together_have_the_rows_in_their_order(self):
        LanceDataset(self.uri).create_scalar_index("id", "BTREE")
        self.delete("id % 4 = 0")
        rewrites = self.rewritten(target_rows_per_fragment=ROWS // 5)
        self.assertGreater(max(len(each.files) for each in rewrites), 1)
        self.delete("id = 101")
        self.commits.commit(rewrites)
        rows = LanceDataset(self.uri).to_table()["id"].to_pylist()
        # The gateway would delete the row that was deleted meanwhile.
        self.assertEqual(rows, [each for each in range(FRAGMENTS * ROWS) if each % 4])

    def test_rows_with_stable_ids_keep_them_and_their_versions(self):
        for part in range(FRAGMENTS):
            ids = list(range(part * ROWS, (part + 1) * ROWS))
            mode = "append" if part else "overwrite"
            lance.write_dataset(pa.table({"id": ids}), f"{self.uri}2", mode=mode, enable_stable_row_ids=True)
        self.commits = Commits(Task("compact_table", f"{self.uri}2", {}), Publisher(f"{self.uri}2"))
        self.uri += "2"
        LanceDataset(self.uri).update({"id": "id + 0"}, where="id % 7 = 0")
        columns = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]

        def facts():
            return sorted(map(tuple, (row.values() for row in LanceDataset(self.uri).to_table(columns).to_pylist())))

        before = facts()
        self.commits.commit(self.rewritten())
        self.assertEqual(facts(), before)
        self.assertEqual(len(self.fragments()), 1)


if __name__ == "__main__":
    unittest.main()
