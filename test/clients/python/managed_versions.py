"""pylance writes and reads tables whose versions are committed through the gateway, which runs with
`--managed-versioning`; checked with the files on the disk, which are the same for every Lance implementation."""

import sys
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import lance
from lance.namespace import DirectoryNamespace, RestNamespace
from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DescribeTableRequest,
    ListTableVersionsRequest,
    TableVersion,
)
from support import people

gateway = RestNamespace(uri=sys.argv[1])


def write(table_id, data, **options):
    return lance.write_dataset(data, namespace_client=RestNamespace(uri=sys.argv[1]), table_id=table_id, **options)


def opened(table_id, **options):
    return lance.dataset(namespace_client=RestNamespace(uri=sys.argv[1]), table_id=table_id, **options)


gateway.create_namespace(CreateNamespaceRequest(id=["managed"]))
declared = gateway.declare_table(DeclareTableRequest(id=["managed", "declared"]))
assert declared.managed_versioning is True, declared
off = {"table_version_tracking_enabled": "false"}
assert gateway.declare_table(DeclareTableRequest(id=["managed", "off"], properties=off)).managed_versioning is None

table_id = ["managed", "t"]
written = write(table_id, people(3), mode="create")
assert written.version == 1 and written.count_rows() == 3
described = gateway.describe_table(DescribeTableRequest(id=table_id))
assert described.managed_versioning is True, described

assert write(table_id, people(2, 10), mode="append").version == 2
dataset = opened(table_id)
assert (dataset.version, dataset.count_rows()) == (2, 5)
dataset.delete("id = 10")
assert (dataset.version, dataset.count_rows()) == (3, 4)
dataset.update({"name": "'new'"}, where="id = 1")
dataset.create_scalar_index("id", "BTREE")
assert dataset.version == 5
assert write(table_id, people(7, 100), mode="overwrite").version == 6

for version, rows in {1: 3, 2: 5, 3: 4, 5: 4, 6: 7}.items():
    pinned = opened(table_id, version=version)
    assert (pinned.version, pinned.count_rows()) == (version, rows), (version, pinned.count_rows())

listed = gateway.list_table_versions(ListTableVersionsRequest(id=table_id, descending=True)).versions
assert [entry.version for entry in listed] == [6, 5, 4, 3, 2, 1], listed
# This method hands a mapping through, and the answer too.
newest = gateway.describe_table_version({"id": table_id})
newest = TableVersion.from_dict(newest["version"])
assert newest == listed[0], newest
path = Path("/") / newest.manifest_path
assert path.is_file() and path.stat().st_size == newest.manifest_size
assert not [name for name in path.parent.iterdir() if ".manifest-" in name.name], "nothing staged is left"


def append(worker):
    for i in range(6):
        write(table_id, people(1, 1000 * worker + i), mode="append")


with ThreadPoolExecutor(3) as pool:
    list(pool.map(append, [1, 2, 3]))
assert opened(table_id).count_rows() == 7 + 18
assert opened(table_id).version == 6 + 18
ids = opened(table_id).to_table(columns=["id"])["id"].to_pylist()
assert len(set(ids)) == len(ids)



class LosesAnswers(BaseHTTPRequestHandler):
    """Passes requests on to the gateway; of a commit, the client gets no answer, or that of a repetition."""

    repeats = False

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        status, answer = self.forward(body)
        if self.path.partition("?")[0].endswith("/version/create"):
            if not self.repeats:
                return
            assert status == 200, answer
            status, answer = self.forward(body)
            assert status == 409, answer
        self.send_response(status)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def forward(self, body):
        request = Request(sys.argv[1] + self.path, body, {"content-type": "application/json"})
        try:
            with urlopen(request) as answer:
                return answer.status, answer.read()
        except HTTPError as error:
            return error.code, error.read()

    def log_message(self, *_):
        pass


# Lance finds its own transaction in the version, and does not add the rows again.
proxy = ThreadingHTTPServer(("127.0.0.1", 0), LosesAnswers)
Thread(target=proxy.serve_forever, daemon=True).start()
through_proxy = RestNamespace(uri=f"http://127.0.0.1:{proxy.server_port}")
assert write(["managed", "lost"], people(3), mode="create").version == 1
for LosesAnswers.repeats in [False, True]:
    lance.write_dataset(people(2), namespace_client=through_proxy, table_id=["managed", "lost"], mode="append")
assert opened(["managed", "lost"]).count_rows() == 3 + 2 + 2
proxy.shutdown()

# The same files, without the gateway.
beside = lance.dataset(described.location)
beside.validate()
assert beside.count_rows() == 25
tracking = DirectoryNamespace(root=sys.argv[2], table_version_tracking_enabled="true")
seen = tracking.list_table_versions(ListTableVersionsRequest(id=table_id, descending=True)).versions
assert [entry.version for entry in seen] == list(range(24, 0, -1))
ours = gateway.list_table_versions(ListTableVersionsRequest(id=table_id, descending=True)).versions
assert [entry.manifest_path for entry in seen] == [entry.manifest_path for entry in ours]
assert [entry.e_tag for entry in seen] == [entry.e_tag for entry in ours], (seen[0], ours[0])
