"""pylance and two gateways that serve the rows commit versions of a table in turn and at once, all of them through one catalog, which runs
with `--managed-versioning`."""

import sys
from concurrent.futures import ThreadPoolExecutor
from urllib.request import Request, urlopen

import lance
from lance.namespace import RestNamespace
from lance_namespace import CreateNamespaceRequest, DescribeTableRequest, ListTableVersionsRequest
from support import people, stream

upstream, *gateways = sys.argv[1:]
table_id = ["shared", "t"]
catalog = RestNamespace(uri=upstream)


def write(uri, data, **options):
    return lance.write_dataset(data, namespace_client=RestNamespace(uri=uri), table_id=table_id, **options)


def opened(uri, **options):
    return lance.dataset(namespace_client=RestNamespace(uri=uri), table_id=table_id, **options)


def post(uri, path, body, kind="application/vnd.apache.arrow.stream"):
    with urlopen(Request(f"{uri}/v1/table/shared$t/{path}", body, {"content-type": kind})) as answer:
        return answer.read()


def count(uri):
    return int(post(uri, "count_rows", b"{}", "application/json"))


catalog.create_namespace(CreateNamespaceRequest(id=["shared"]))
post(gateways[0], "create", stream(people(3)))
assert catalog.describe_table(DescribeTableRequest(id=table_id)).managed_versioning is True
for uri in [upstream, *gateways]:
    assert (opened(uri).version, opened(uri).count_rows()) == (1, 3), uri

# In turn: each sees the version of the one before.
rows = 3
for turn in range(2):
    for uri in [*gateways, upstream]:
        if uri == upstream:
            write(uri, people(1, 100 + rows), mode="append")
        else:
            post(uri, "insert", stream(people(1, 100 + rows)))
        rows += 1
        for each in gateways:
            assert count(each) == rows, (turn, uri, each)
        assert opened(upstream).count_rows() == rows
opened(gateways[1]).delete("id = 1")
assert [count(each) for each in gateways] == [rows - 1] * 2
post(gateways[0], "delete", b'{"predicate": "id = 2"}', "application/json")
assert opened(upstream).count_rows() == rows - 2
before = opened(upstream)


# At once.
def append(worker):
    for each in range(6):
        data = people(1, 1000 * worker + each)
        if worker == 1:
            write(upstream, data, mode="append")
        elif worker == 2:
            write(gateways[1], data, mode="append")
        else:
            post(gateways[worker % 2], "insert", stream(data))


with ThreadPoolExecutor(4) as pool:
    list(pool.map(append, [1, 2, 3, 4]))
rows = before.count_rows() + 24
after = opened(upstream)
assert (after.version, after.count_rows()) == (before.version + 24, rows), (after.version, after.count_rows())
ids = after.to_table(columns=["id"])["id"].to_pylist()
assert len(set(ids)) == len(ids)
assert [count(each) for each in gateways] == [rows] * 2

# Every version is the catalog's, and each gateway names the same ones.
listed = [
    [entry.version for entry in RestNamespace(uri=uri).list_table_versions(ListTableVersionsRequest(id=table_id, descending=True)).versions]
    for uri in [upstream, *gateways]
]
assert listed[0] == list(range(after.version, 0, -1)) and listed[0] == listed[1] == listed[2], listed
after.validate()
