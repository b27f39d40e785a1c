"""pylance with nothing but a gateway's address and a key: the gateway vends credentials for the storage.

Prints the secrets that the gateway handed out.
"""

import json
import sys
import time

import lance
import pyarrow as pa
from lance.namespace import RestNamespace
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest, DescribeTableRequest

uri, owner_key, writer_key, reader_key = sys.argv[1:]
owner = RestNamespace(uri=uri, **{"header.x-api-key": owner_key})
writer = RestNamespace(uri=uri, **{"header.x-api-key": writer_key})
reader = RestNamespace(uri=uri, **{"header.x-api-key": reader_key})
secrets = set()


def vended(namespace, id, **flags):
    answer = namespace.describe_table(DescribeTableRequest(id=id, **flags))
    options = answer.storage_options
    secrets.update(options[name] for name in ("aws_secret_access_key", "aws_session_token") if name in options)
    return answer.location, options


def rows(first, count):
    return pa.table({"id": range(first, first + count), "text": ["x" * 100] * count})


# Names that a policy could take for variables or the end of a text; "$" joins the names of namespaces and tables.
owner.create_namespace(CreateNamespaceRequest(id=["ns"]))
IDS = [["plain"], ["ns", "{aws:username}"], ['quo"te'], ["日本"], ["per cent&more"]]
for id in IDS:
    table = dict(namespace_client=writer, table_id=id)
    lance.write_dataset(rows(0, 50), mode="create", **table)
    lance.write_dataset(rows(50, 50), mode="append", **table)
    assert lance.dataset(namespace_client=reader, table_id=id).count_rows() == 100, id

# The credentials have every name that clients know, and say when they expire.
location, options = vended(writer, ["plain"])
for name in ("access_key_id", "secret_access_key", "session_token"):
    assert options[name] == options[f"aws_{name}"], name
assert int(options["expires_at_millis"]) > time.time() * 1000 - 60_000
assert "aws_access_key_id" not in vended(writer, ["plain"], vend_credentials=False)[1]
declared = writer.declare_table(DeclareTableRequest(id=["declared"]))
assert "aws_session_token" in declared.storage_options


def frozen(options):
    """The options as of now: without an expiry, nothing asks for others."""
    return {name: value for name, value in options.items() if name != "expires_at_millis"}


def check_denied(work):
    try:
        work()
    except (OSError, ValueError) as error:
        assert "AccessDenied" in str(error) or "403" in str(error), error
        return
    raise AssertionError("the storage allowed it")


# A reader reads and does not write.
location, read_only = vended(reader, ["plain"])
assert lance.dataset(location, storage_options=frozen(read_only)).count_rows() == 100
check_denied(
    lambda: lance.write_dataset(rows(0, 1), location, mode="append", storage_options=frozen(read_only))
)

# Credentials are of no use outside of their table, whether the other one exists or not.
other, _ = vended(writer, IDS[1])
for place, id in [(other, ["plain"]), (location, IDS[1]), (f"{location}x", ["plain"])]:
    own = vended(writer, id)[1]
    check_denied(lambda: lance.dataset(place, storage_options=frozen(own)))
    own = vended(writer, id)[1]
    check_denied(lambda: lance.write_dataset(rows(0, 1), place, mode="append", storage_options=frozen(own)))

# A scan goes on when the credential with which it began has expired.
long = ["long"]
for start in range(0, 4000, 1000):
    mode = "append" if start else "create"
    lance.write_dataset(rows(start, 1000), namespace_client=writer, table_id=long, mode=mode)
dataset = lance.dataset(namespace_client=reader, table_id=long)
location, first = vended(reader, long)
batches = dataset.to_batches(batch_size=50, batch_readahead=1, fragment_readahead=1)
seen = [next(batches)["id"].to_pylist()]


def has_expired(options):
    try:
        lance.dataset(location, storage_options=frozen(options)).count_rows()
        return False
    except (OSError, ValueError) as error:
        assert "ExpiredToken" in str(error), error
        return True


while not has_expired(first):
    time.sleep(0.2)
seen += [batch["id"].to_pylist() for batch in batches]
assert sorted(id for ids in seen for id in ids) == list(range(4000))
assert vended(reader, long)[1]["aws_access_key_id"] != first["aws_access_key_id"]

# A dataset that was opened before also writes with credentials of now.
assert lance.dataset(namespace_client=writer, table_id=long).count_rows() == 4000
lance.write_dataset(rows(4000, 10), namespace_client=writer, table_id=long, mode="append")
assert dataset.checkout_version(dataset.latest_version).count_rows() == 4010

print(json.dumps(sorted(secrets)))
