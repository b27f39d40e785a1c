"""Tests of the driver without a cluster: `python -m unittest discover python/tests`."""

import hashlib
import io
import json
import threading
import unittest
from contextlib import redirect_stderr, redirect_stdout
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pyarrow as pa
from lance import write_dataset
from lance.dataset import Index, IndexFile, LanceDataset

from ray.exceptions import NodeDiedError, OutOfMemoryError, RayTaskError, WorkerCrashedError

from lance_ray.field_path import resolve_arrow_field_path
from lance_ray.index import _indices_builder_for_field_path

from lance_gateway_ray import __main__ as program
from lance_gateway_ray import indices
from lance_gateway_ray.gateway import Gateway, GoneError, RefusedError, Task
from lance_gateway_ray.key import create_key, key_line
from lance_gateway_ray.sampling import sampling_existing_rows
from lance_gateway_ray.segments import collecting_segments, segment_json


class Answers(BaseHTTPRequestHandler):
    """Answers calls by the server's list of statuses and bodies, and keeps what was sent."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.calls.append((self.path, body, self.headers["authorization"]))
        status, answer = self.server.answers.pop(0)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_):
        pass


class DriverTest(unittest.TestCase):
    def serve(self, *answers):
        server = HTTPServer(("127.0.0.1", 0), Answers)
        server.calls, server.answers = [], list(answers)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server, f"http://127.0.0.1:{server.server_port}/"

    def gateway(self, url, patience=10.0):
        return Gateway(url, "job", 2, "secret", patience=patience, sleep=lambda _: None)

    def test_the_log_shows_the_digest_of_the_key_alone(self):
        key = create_key()
        self.assertGreaterEqual(len(key), 43)
        self.assertNotIn(key, key_line(key))
        self.assertEqual(key_line(key).rsplit(":")[-1], hashlib.sha256(key.encode()).hexdigest())

    def test_the_task_is_asked_for_until_the_gateway_knows_the_key(self):
        task = {"kind": "create_index", "uri": "/t", "task": {"workers": 3}}
        server, url = self.serve((503, {"error": "not yet"}), (200, task))
        found = self.gateway(url).describe_task()
        self.assertEqual((found.kind, found.uri, found.workers), ("create_index", "/t", 3))
        place = {"job_id": "job", "run": 2}
        self.assertEqual(server.calls, [("/v1/drivers/describe", place, "Bearer secret")] * 2)

    def test_a_refused_key_ends_the_run(self):
        _, url = self.serve((401, {"error": "the key is not that of a running job's driver"}))
        with self.assertRaisesRegex(GoneError, "not that of"):
            self.gateway(url).describe_task()

    def test_a_call_that_fails_in_the_gateway_is_given_up_after_a_few_tries(self):
        for status in (500, 520):
            fault = (status, {"error": "internal error"})
            server, url = self.serve(fault, fault, fault, (200, {"kind": "k", "uri": "/t"}))
            self.assertEqual(self.gateway(url).describe_task().kind, "k")
            server, url = self.serve(*[fault] * 10)
            with self.assertRaisesRegex(OSError, f"{status}: internal error"):
                self.gateway(url, patience=900.0).describe_task()
            self.assertEqual(len(server.calls), 4)

    def test_a_busy_gateway_is_asked_for_as_long_as_one_that_restarts(self):
        busy = [(status, {"error": "busy"}) for status in (503, 429, 502, 504)] * 3
        server, url = self.serve(*busy, (200, {"kind": "k", "uri": "/t"}))
        self.assertEqual(self.gateway(url, patience=900.0).describe_task().kind, "k")
        self.assertEqual(len(server.calls), 13)

    def test_a_call_that_the_gateway_does_not_have_is_refused_at_once(self):
        server, url = self.serve((501, {"error": "Unsupported"}))
        with self.assertRaisesRegex(RefusedError, "refuses describe: Unsupported"):
            self.gateway(url, patience=900.0).describe_task()
        self.assertEqual(len(server.calls), 1)

    def test_a_gateway_that_does_not_answer_is_given_up(self):
        with self.assertRaises(OSError):
            self.gateway("http://127.0.0.1:1", patience=0).describe_task()

    def test_lost_progress_costs_nothing(self):
        with redirect_stderr(io.StringIO()):
            self.gateway("http://127.0.0.1:1").progress("Phase 1")

    def run_program(self, *answers, work):
        server, url = self.serve(*answers)
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.dict(program.KINDS, {"k": work}), redirect_stdout(out), redirect_stderr(err):
            code = program.main(["--gateway", url, "--job", "job", "--run", "1"])
        return code, server.calls, out.getvalue() + err.getvalue()

    def test_the_result_is_reported(self):
        task = {"kind": "k", "uri": "/t", "task": {}}
        code, calls, _ = self.run_program((200, task), (200, {}), work=lambda *_: {"made": 1})
        self.assertEqual((code, calls[-1][0]), (0, "/v1/drivers/finish"))
        self.assertEqual(calls[-1][1]["result"], {"made": 1})

    def test_a_result_that_the_gateway_refuses_is_a_failure(self):
        task = {"kind": "k", "uri": "/t", "task": {}}
        answers = (200, task), (413, {"error": "the body is too large"}), (200, {})
        code, calls, _ = self.run_program(*answers, work=lambda *_: {"made": 1})
        self.assertEqual(code, 1)
        message = "RefusedError: the gateway refuses finish: the body is too large"
        self.assertEqual(calls[-1][1]["failure"], {"message": message, "retryable": False})

    def test_a_failure_is_reported_without_the_key(self):
        def fail(_: Task, __: Gateway):
            raise ValueError("no such column")

        task = {"kind": "k", "uri": "/t", "task": {}}
        code, calls, shown = self.run_program((200, task), (200, {}), work=fail)
        failure = {"message": "ValueError: no such column", "retryable": False}
        self.assertEqual((code, calls[-1][1]["failure"]), (1, failure))
        self.assertNotIn(calls[-1][2].removeprefix("Bearer "), shown)

    def test_a_task_that_the_gateway_refuses_is_a_failure(self):
        code, calls, _ = self.run_program((409, {"error": "got data"}), (200, {}), work=lambda *_: {})
        failure = {"message": "RefusedError: the gateway refuses describe: got data", "retryable": False}
        self.assertEqual((code, calls[-1][1]["failure"]), (1, failure))

    def test_failures_of_the_cluster_pass_and_those_of_its_functions_do_not(self):
        for error in (WorkerCrashedError(), OutOfMemoryError("killed"), NodeDiedError("gone"), OSError("AWS Error")):
            self.assertTrue(program.is_passing(error), error)
        for cause, passes in ((ValueError("no"), False), (OSError("AWS Error"), True)):
            self.assertIs(program.is_passing(RayTaskError("f", "", cause)), passes)

    def test_a_failure_that_lance_ray_words_passes_with_its_cause(self):
        for cause, passes in ((WorkerCrashedError(), True), (ValueError("no"), False), (None, False)):
            error = RuntimeError("Failed to complete distributed index building")
            error.__cause__ = cause
            self.assertIs(program.is_passing(error), passes)

    def build_index(self, *failures):
        """Builds an index whose first builds fail; returns how often it was built, and the failure."""
        failures = list(failures)

        def build(*_, **__):
            if failures:
                raise RuntimeError("the build has failed") from failures.pop(0)

        details = {"column": "c", "index_type": "IVF_PQ", "name": "i", "is_vector": True}
        with mock.patch.object(indices.lance_ray, "create_index", mock.Mock(side_effect=build)) as made:
            with redirect_stderr(io.StringIO()):
                try:
                    indices.create_index(Task("create_index", "/t", details), None)
                except RuntimeError as error:
                    return made.call_count, str(error)
        return made.call_count, None

    def test_an_index_is_built_again_after_the_death_of_a_worker_alone(self):
        self.assertEqual(self.build_index(WorkerCrashedError(), NodeDiedError("gone")), (3, None))
        self.assertEqual(self.build_index(*[WorkerCrashedError()] * 3), (3, "the build has failed"))
        for error in (ValueError("no such column"), OSError("AWS Error")):
            self.assertEqual(self.build_index(error), (1, "the build has failed"))

    def test_an_unknown_kind_is_a_failure(self):
        task = {"kind": "later", "uri": "/t", "task": {}}
        code, calls, _ = self.run_program((200, task), (200, {}), work=lambda *_: {})
        self.assertEqual(code, 1)
        self.assertIn("cannot do later", calls[-1][1]["failure"]["message"])

    def test_segments_are_collected_and_not_committed(self):
        index = Index(
            uuid="u",
            name="i",
            fields=[1],
            dataset_version=3,
            fragment_ids={2, 0},
            index_version=1,
            files=[IndexFile(path="index.idx", size_bytes=7)],
            index_details=("/lance.index.pb.VectorIndexDetails", b"\x01"),
        )
        commit = LanceDataset.commit_existing_index_segments
        with collecting_segments() as segments:
            LanceDataset.commit_existing_index_segments(None, index_name="i", column="c", segments=[index])
        self.assertIs(LanceDataset.commit_existing_index_segments, commit)
        [found] = segments
        self.assertEqual(
            segment_json(found),
            {
                "uuid": "u",
                "fields": [1],
                "dataset_version": 3,
                "fragment_ids": [0, 2],
                "index_version": 1,
                "type_url": "/lance.index.pb.VectorIndexDetails",
                "details": "AQ==",
                "files": [{"path": "index.idx", "size": 7}],
            },
        )

    def test_a_segment_of_a_full_text_index_has_the_files_that_it_is_read_by(self):
        with TemporaryDirectory() as directory:
            dataset = write_dataset(pa.table({"text": [f"word {at % 7}" for at in range(100)]}), f"{directory}/t")
            built = dataset.create_index_uncommitted(
                column="text", index_type="INVERTED", name="i", fragment_ids=[0]
            )
            segment = segment_json(indices.finish_segment(built, dataset.uri, {}))
            self.assertIn("metadata.lance", [file["path"] for file in segment["files"]])
            self.assertEqual(segment["fragment_ids"], [0])
            for file in segment["files"]:
                path = Path(directory, "t", "_indices", segment["uuid"], file["path"])
                self.assertEqual(path.stat().st_size, file["size"])

    def test_each_training_samples_as_many_rows_as_there_are(self):
        vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(at % 97) for at in range(8 * 640)]), 8)
        nested = pa.StructArray.from_arrays([vectors], ["vector"])
        rates = []

        def noting(train):
            def noted(*args, **options):
                rates.append(options["sample_rate"])
                return train(*args, **options)

            return noted

        with TemporaryDirectory() as directory:
            dataset = write_dataset(pa.table({"vector": vectors, "nested": nested}), f"{directory}/t")
            for column in ("vector", "nested.vector"):
                path = resolve_arrow_field_path(dataset.schema, column)
                builder = _indices_builder_for_field_path(dataset, path.path, path.field)
                kind = type(builder)
                with mock.patch.object(kind, "train_ivf", noting(kind.train_ivf)):
                    with mock.patch.object(kind, "train_pq", noting(kind.train_pq)), sampling_existing_rows():
                        ivf = builder.train_ivf(4, distance_type="l2", sample_rate=256)
                        builder.train_pq(ivf, num_subvectors=2, sample_rate=256)
                        builder.train_ivf(2, distance_type="l2", sample_rate=256)
                with self.assertRaisesRegex(ValueError, "not enough rows"):
                    builder.train_ivf(4, distance_type="l2", sample_rate=256)
        self.assertEqual(rates, [160, 2, 256] * 2)


if __name__ == "__main__":
    unittest.main()
