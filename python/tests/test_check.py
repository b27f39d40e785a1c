"""Tests of the check of a cluster, without a cluster."""

import io
import threading
import unittest
from contextlib import redirect_stderr, redirect_stdout
from http.server import BaseHTTPRequestHandler, HTTPServer
from unittest import mock

from lance_gateway_ray import check


class Healthy(BaseHTTPRequestHandler):
    """Answers the path of a gateway's health alone."""

    def do_GET(self):
        self.send_response(200 if self.path == "/healthz" else 404)
        self.end_headers()

    def log_message(self, *_):
        pass


class TestCheck(unittest.TestCase):
    def setUp(self):
        self.server = HTTPServer(("127.0.0.1", 0), Healthy)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def run_with(self, nodes):
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.object(check.ray, "init"),
            mock.patch.object(check, "ask_nodes", return_value=nodes),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            code = check.main(["--gateway", self.url])
        return code, out.getvalue(), err.getvalue()

    def test_describes_a_node_that_can_work(self):
        found = check.describe_node(f"{self.url}/")
        self.assertEqual(found["gateway"], "answers")
        self.assertEqual((found["lance-ray"], found["pylance"]), ("0.5.0", "14.0.2"))

    def test_says_why_a_gateway_does_not_answer(self):
        self.assertIn("404", check.describe_node(f"{self.url}/nothing")["gateway"])
        self.assertIn("URLError", check.describe_node("http://127.0.0.1:1")["gateway"])

    def test_accepts_equal_nodes(self):
        node = check.describe_node(self.url)
        code, out, err = self.run_with({"a": {**node}, "b": {**node}})
        self.assertEqual((code, err), (0, ""))
        self.assertIn("b: python", out)

    def test_names_nodes_that_differ_or_lack_something(self):
        node = {**check.describe_node(self.url), "lance-gateway-ray": "0.1.0"}
        other = {**node, "pyarrow": "1.0.0", "lance-ray": "missing", "gateway": "URLError: refused"}
        code, _, err = self.run_with({"a": node, "b": other})
        self.assertEqual(code, 1)
        self.assertEqual(
            err.splitlines(),
            [
                "b cannot work for the gateway: URLError: refused",
                "b has no lance-ray",
                f"b has pyarrow 1.0.0, and a {node['pyarrow']}",
            ],
        )

    def test_asks_every_node_that_lives(self):
        node = {"NodeManagerHostname": "n", "NodeManagerAddress": "10.0.0.1", "NodeID": "a" * 56}
        nodes = [{**node, "Alive": True}, {**node, "NodeID": "b" * 56, "Alive": False}]
        remote = mock.Mock()
        with (
            mock.patch.object(check.ray, "nodes", return_value=nodes),
            mock.patch.object(check.ray, "remote", return_value=lambda _: remote),
            mock.patch.object(check.ray, "get", side_effect=lambda found, timeout: found),
        ):
            found = check.ask_nodes("http://gateway")
        self.assertEqual(list(found), ["n (10.0.0.1)"])
        place = remote.options.call_args.kwargs["scheduling_strategy"]
        self.assertEqual((place.node_id, place.soft), ("a" * 56, False))


if __name__ == "__main__":
    unittest.main()
