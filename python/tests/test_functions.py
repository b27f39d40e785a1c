"""Functions, as a worker calls them. They run in this process, without Ray."""

import base64
import hashlib
import os
import sys
import traceback
import unittest

import pyarrow as pa
from lance_gateway_ray.computed import compute_fragments
from lance_gateway_ray.functions import apply, function_of, load

HEADER = "from __future__ import annotations\n\nimport pyarrow as pa\n\n"


def described(body, entrypoint="f", **changes):
    source = (HEADER + body).encode()
    return {
        "artifact": {
            "kind": "python_callable",
            "digest": f"sha256:{hashlib.sha256(source).hexdigest()}",
            "entrypoint": entrypoint,
        },
        "runtime": {
            "python_version": f"{sys.version_info.major}.{sys.version_info.minor}",
            "environment": {"kind": "pip", "packages": []},
            "env": {"MODE": "plain"},
        },
        "signature": {"inputs": [{"name": "x", "arrow_type": "int64", "nullable": False}]},
        "source": base64.b64encode(source).decode(),
        "inputs": [["x", "x"]],
        "secrets": {"TOKEN": "value"},
        **changes,
    }


def computed(details, values, kind=pa.int64()):
    function = function_of(details)
    batch = pa.record_batch({"x": pa.array(values, pa.int64())})
    found, rows, errors = apply(load(function), function, batch, list(range(len(values))), kind)
    return [value.as_py() for value in found], rows, [(error.offset, error.type) for error in errors]


class FunctionTest(unittest.TestCase):
    def setUp(self):
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))

    def test_calls_a_function_for_each_row_and_skips_those_that_fail(self):
        body = "def f(x: int) -> int:\n    return 10 // x if x < 5 else None\n"
        self.assertEqual(computed(described(body), [2, 0, None, 7]), ([5], [0], [(1, "ZeroDivisionError"), (2, "ValueError"), (3, "ValueError")]))

    def test_makes_one_instance_of_a_class(self):
        body = "class f:\n    def __init__(self, factor):\n        self.factor, self.calls = factor, 0\n\n    def __call__(self, x):\n        self.calls += 1\n        return x * self.factor + self.calls\n"
        self.assertEqual(computed(described(body, initialization={"factor": 10}), [1, 2])[0], [11, 22])

    def test_calls_a_function_of_arrays_once_for_a_batch(self):
        body = "def f(x: pa.Array) -> pa.Array:\n    return pa.array([len(x)] * len(x))\n"
        self.assertEqual(computed(described(body), [1, 2, 3])[0], [3, 3, 3])
        body = "def f(batch: pa.RecordBatch) -> pa.Array:\n    return batch.column('x')\n"
        self.assertEqual(computed(described(body), [1, 2])[0], [1, 2])

    def test_sets_variables_and_secrets(self):
        body = "import os\n\ndef f(x: int) -> str:\n    return os.environ['MODE'] + os.environ['TOKEN']\n"
        self.assertEqual(computed(described(body), [1], pa.string())[0], ["plainvalue"])

    def test_refuses_another_source_and_another_python(self):
        body = "def f(x: int) -> int:\n    return x\n"
        details = described(body)
        details["artifact"]["digest"] = "sha256:" + "0" * 64
        with self.assertRaisesRegex(ValueError, "damaged"):
            load(function_of(details))
        details = described(body)
        details["runtime"]["python_version"] = "3.1"
        with self.assertRaisesRegex(ValueError, "wants Python 3.1"):
            load(function_of(details))

    def test_reports_no_secret_that_an_exception_quotes(self):
        body = "import os\n\ndef f(x: int) -> str:\n    raise KeyError('no key ' + os.environ['TOKEN'])\n"
        function = function_of(described(body, secrets={"TOKEN": "s3cret-value", "PREFIX": "s3cret"}))
        batch = pa.record_batch({"x": pa.array([1], pa.int64())})
        _, _, [error] = apply(load(function), function, batch, [0], pa.string())
        self.assertEqual(error.message, "'no key [secret]'")
        whole = body.replace("x: int) -> str", "x: pa.Array) -> pa.Array")
        function = function_of(described(whole, secrets={"TOKEN": "s3cret-value"}))
        _, _, [error] = apply(load(function), function, batch, [0], pa.string())
        self.assertNotIn("s3cret", error.message)

    def test_reports_no_secret_of_a_module_that_cannot_be_imported(self):
        body = "import os\n\nraise RuntimeError('refused: ' + os.environ['TOKEN'])\n"
        before = dict(os.environ)
        function = function_of(described(body, secrets={"TOKEN": "s3cret-value"}))
        with self.assertRaises(Exception) as raised:
            compute_fragments([], "", {}, 1, "y", "true", function)
        shown = "".join(traceback.format_exception(raised.exception))
        self.assertNotIn("s3cret", shown)
        self.assertIn("RuntimeError: refused: [secret]", shown)
        self.assertEqual(dict(os.environ), before)

    def test_shows_no_secret_when_it_is_printed(self):
        self.assertNotIn("value", repr(function_of(described("def f(x):\n    return x\n"))))


if __name__ == "__main__":
    unittest.main()
