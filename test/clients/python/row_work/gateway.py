"""A table of the gateway, over its REST API, with every field as it is given."""

import json
from urllib.parse import urlencode

import pyarrow as pa
import urllib3

STREAM = {"content-type": "application/vnd.apache.arrow.stream"}
JSON = {"content-type": "application/json"}


class Absent:
    """The value of a field that is not sent."""

    def __repr__(self):
        return "absent"


ABSENT = Absent()


class Refused(Exception):
    """The gateway refused a call, with this status."""

    def __init__(self, status, text):
        super().__init__(f"{status} {text}")
        self.status = status


class Remote:
    """The table of a name."""

    def __init__(self, pool: urllib3.PoolManager, uri: str, name: str):
        self._pool = pool
        self._path = f"{uri}/v1/table/{name}"

    def create(self, rows):
        return json.loads(self._send("create?mode=overwrite", stream_of(rows), STREAM))

    def drop(self):
        self._send("drop", b"", JSON)

    def call(self, operation, **fields):
        """Sends the fields as they are, without those that are `ABSENT`."""
        sent = {name: value for name, value in fields.items() if value is not ABSENT}
        return json.loads(self._send(operation, json.dumps(sent).encode(), JSON))

    def merge(self, rows, **parameters):
        pairs = [(name, each) for name, value in parameters.items() if value is not None for each in ([value] if isinstance(value, str) else value)]
        return json.loads(self._send(f"merge_insert?{urlencode(pairs)}", stream_of(rows), STREAM))

    def query(self, **fields):
        sent = {name: value for name, value in fields.items() if value is not ABSENT}
        return pa.ipc.open_file(self._send("query", json.dumps(sent).encode(), JSON)).read_all()

    def rows(self):
        return self.query(vector={})

    def _send(self, operation, body, headers):
        answer = self._pool.request("POST", f"{self._path}/{operation}", body=body, headers=headers, retries=False)
        if answer.status >= 300:
            raise Refused(answer.status, answer.data.decode(errors="replace")[:500])
        return answer.data




def stream_of(rows):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()
