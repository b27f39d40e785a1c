"""The other side of `bench -- flight`: pyarrow's own Flight server, and the client that measures all servers."""

import json
import os
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

NAME = "rows"
DESCRIPTOR = flight.FlightDescriptor.for_path(NAME)
CHUNK = 65_536


def rows(mebibytes):
    """A table of numbers and strings."""
    count = mebibytes * 2**20 // 56
    draw = np.random.default_rng(1)
    text = pa.array([f"name {i:015d}" for i in draw.integers(0, 10**9, min(count, 1_000_000))])
    texts = pa.concat_arrays([text] * (count // len(text) + 1)).slice(0, count)
    return pa.table({
        "id": np.arange(count), "value": draw.random(count), "group": draw.integers(0, 5000, count, np.int64), "name": texts,
    })


# What the server answers to every statement in SQL, and the columns of the facts that ADBC asks for when it connects.
ONE = pa.table({"1": pa.array([1], pa.int32())})
FACTS = pa.schema([
    pa.field("info_name", pa.uint32(), False),
    pa.field("value", pa.dense_union([
        pa.field("string_value", pa.string()), pa.field("bool_value", pa.bool_()), pa.field("bigint_value", pa.int64()),
        pa.field("int32_bitmask", pa.int32()), pa.field("string_list", pa.list_(pa.string())),
        pa.field("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
    ])),
])


class Server(flight.FlightServerBase):
    def __init__(self):
        super().__init__("grpc://127.0.0.1:0")
        self.table = None

    def get_flight_info(self, context, descriptor):
        for name, schema in (b"CommandGetSqlInfo", FACTS), (b"CommandStatementQuery", ONE.schema):
            if name in (descriptor.command or b""):
                return flight.FlightInfo(schema, descriptor, [flight.FlightEndpoint(name, [])], -1, -1)
        endpoint = flight.FlightEndpoint(b"rows", [])
        return flight.FlightInfo(self.table.schema, descriptor, [endpoint], self.table.num_rows, -1)

    def do_get(self, context, ticket):
        if ticket.ticket == b"CommandGetSqlInfo":
            return flight.GeneratorStream(FACTS, iter(()))
        return flight.RecordBatchStream(ONE if ticket.ticket == b"CommandStatementQuery" else self.table)

    def do_put(self, context, descriptor, reader, writer):
        # The first message has the gateway's options alone.
        batches = [chunk.data for chunk in reader if chunk.data is not None]
        self.table = pa.Table.from_batches(batches, reader.schema)
        writer.write(pa.py_buffer(b"{}"))


def put(client, table):
    writer, results = client.do_put(DESCRIPTOR, table.schema)
    writer.write_metadata(b'{"write": "replace"}')
    began = time.perf_counter()
    writer.write_table(table, max_chunksize=CHUNK)
    writer.done_writing()
    results.read()
    writer.close()
    return table.nbytes / 1e6 / (time.perf_counter() - began)


def get(client):
    ticket = client.get_flight_info(DESCRIPTOR).endpoints[0].ticket
    began = time.perf_counter()
    # The bare server sends the options of the DoPut, too, which come without rows.
    size = sum(chunk.data.nbytes for chunk in client.do_get(ticket) if chunk.data is not None)
    return size / 1e6 / (time.perf_counter() - began)


def computed(process):
    """Returns the computing time of a process and its threads, in seconds."""
    with open(f"/proc/{process}/stat") as file:
        times = file.read().rsplit(") ", 1)[1].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def measure(work, process, size):
    """Returns the rate of work in MB/s, and the seconds that the server and this client compute for a gigabyte."""
    before = computed(process), computed("self")
    rate = work()
    server, client = ((computed(who) - began) / (size / 1e9) for who, began in zip((process, "self"), before))
    return {"rate": rate, "server": server, "client": client}


def select_one(addresses, count):
    """Times of a statement at each address, in turn, in milliseconds."""
    import adbc_driver_flightsql.dbapi as flight_sql

    connections = [flight_sql.connect(f"grpc://{address}", autocommit=True) for address in addresses]
    cursors = [connection.cursor() for connection in connections]
    times = {address: [] for address in addresses}
    for _ in range(count + 20):
        for address, cursor in zip(addresses, cursors):
            began = time.perf_counter()
            cursor.execute("SELECT 1")
            cursor.fetchall()
            times[address].append((time.perf_counter() - began) * 1e3)
    for closed in cursors + connections:
        closed.close()
    return {address: sorted(found[20:]) for address, found in times.items()}


def main(command, *args):
    if command == "serve":
        server = Server()
        print(server.port, flush=True)
        server.serve()
    elif command == "select":
        found = select_one(args[1:], int(args[0]))
        print(json.dumps({
            address: {"least": times[0], "p50": times[len(times) // 2]} for address, times in found.items()
        }))
    else:
        table = rows(int(args[0]))
        servers = [server.split("=") for server in args[2:]]
        clients = {process: flight.connect(f"grpc://{address}") for process, address in servers}
        found = {process: {"put": [], "get": []} for process in clients}
        for _ in range(int(args[1])):
            for process, client in clients.items():
                found[process]["put"].append(measure(lambda: put(client, table), process, table.nbytes))
                found[process]["get"].append(measure(lambda: get(client), process, table.nbytes))
        print(json.dumps(found))


main(*sys.argv[1:])
