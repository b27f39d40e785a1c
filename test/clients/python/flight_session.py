"""An ordinary session of pyarrow's client of Arrow Flight: writes in every way, reads, lists, renews and cancels."""

import json
import sys
import urllib.request

import pyarrow as pa
import pyarrow.flight as flight

address = sys.argv[1]
client = flight.connect(f"grpc://{address}")


def put(descriptor, table, options=None, chunk=None):
    writer, results = client.do_put(descriptor, table.schema)
    if options is not None:
        writer.write_metadata(json.dumps(options).encode())
    writer.write_table(table, max_chunksize=chunk)
    writer.done_writing()
    answer = results.read()
    writer.close()
    return json.loads(answer.to_pybytes())


def read(descriptor):
    info = client.get_flight_info(descriptor)
    table = client.do_get(info.endpoints[0].ticket).read_all()
    assert table.schema == info.schema, (table.schema, info.schema)
    return info, table


def refused(kind, call, text):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"{text}: the call succeeds")


rows = pa.table(
    {
        "id": pa.array(range(1000), pa.int64()),
        "name": [f"name {i}" for i in range(1000)],
        "kind": pa.array([f"kind {i % 3}" for i in range(1000)]).dictionary_encode(),
        "parts": pa.array([[i, None] if i % 2 else None for i in range(1000)], pa.list_(pa.int32())),
    }
)
path = flight.FlightDescriptor.for_path("flight_rows")

refused(pa.lib.ArrowKeyError, lambda: client.get_flight_info(path), "not found")
assert put(path, rows, {"write": "create"}, 300)["version"] == 1
info, table = read(path)
# The engine may order the values of a dictionary in its own way.
assert info.total_records == 1000 and table.to_pylist() == rows.to_pylist()
assert client.get_schema(path).schema == info.schema

assert put(path, rows.slice(0, 10))["version"] == 2
assert client.do_get(info.endpoints[0].ticket).read_all().num_rows == 1000
merge = {"write": "merge", "id": ["flight_rows"], "on": ["id"], "when_matched_update_all": True}
put(flight.FlightDescriptor.for_command(json.dumps({**merge, "when_not_matched_insert_all": True})), rows.slice(990))
assert put(path, rows, {"write": "overwrite"})["version"] > 2
assert read(path)[0].total_records == 1000

query = {"id": ["flight_rows"], "filter": "id < 3", "columns": {"column_names": ["name"]}}
_, found = read(flight.FlightDescriptor.for_command(json.dumps(query)))
assert found.to_pydict() == {"name": ["name 0", "name 1", "name 2"]}, found

listed = {b"/".join(each.descriptor.path) for each in client.list_flights()}
assert b"flight_rows" in listed, listed
assert all(each.schema is None for each in client.list_flights())



def act(action, part):
    """Runs an action whose parameters are a message with a single field."""
    length, size = [], len(part)
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    body = b"\x0a" + bytes([*length, size]) + part
    return next(client.do_action(flight.Action(action, body))).body.to_pybytes()


renewed = flight.FlightEndpoint.deserialize(act("RenewFlightEndpoint", info.endpoints[0].serialize()))
assert client.do_get(renewed.ticket).read_all().num_rows == 1000
not_cancellable = b"\x08\x03"
assert act("CancelFlightInfo", info.serialize()) == not_cancellable
assert {action.type for action in client.list_actions()} >= {"CancelFlightInfo", "RenewFlightEndpoint"}

# A reader that has enough leaves the rest.
reader = client.do_get(info.endpoints[0].ticket)
reader.read_chunk()
reader.cancel()

refused(pa.lib.ArrowInvalid, lambda: client.do_get(flight.Ticket(b"forged")).read_all(), "not from this gateway")
refused(pa.lib.ArrowInvalid, lambda: put(path, rows, {"write": "upsert"}), "upsert")
refused(NotImplementedError, lambda: client.do_exchange(path)[1].read_chunk(), "DoExchange")
token = client.authenticate_basic_token("anyone", "a-token")
assert token == (b"authorization", b"Bearer a-token"), token
# Later sessions at this gateway list the root.
json_type = {"content-type": "application/json"}
urllib.request.urlopen(urllib.request.Request(f"http://{address}/v1/table/flight_rows/drop", b"{}", json_type))
print("ok")
