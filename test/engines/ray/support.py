"""What the sessions on Ray share. The first argument of a session is the address of a gateway."""

import io
import json
import sys
import time
import urllib.error
import urllib.request

import pyarrow as pa

uri = sys.argv[1]


def send(path, body, content_type):
    request = urllib.request.Request(f"{uri}/v1/{path}", body, {"content-type": content_type})
    try:
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{path}: {error.code} {error.read().decode()}") from None


def call(path, body=None):
    return send(path, json.dumps(body or {}).encode(), "application/json")


def insert(name, table):
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    send(f"table/{name}/insert", stream.getvalue(), "application/vnd.apache.arrow.stream")


def jobs(kind=None):
    return [job for job in call("jobs/list")["jobs"] if kind in (None, job["job_type"])]


def fragments(name):
    return call(f"table/{name}/stats")["fragment_stats"]["num_fragments"]


def until(condition, facts=lambda: "", seconds=240):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"it did not come true: {facts()}")
        time.sleep(0.5)
