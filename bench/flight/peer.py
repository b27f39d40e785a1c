"""The other side of `bench -- flight`: pyarrow's own Flight server, and the client that measures it and the gateway."""

import json
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


class Server(flight.FlightServerBase):
    def __init__(self):
        super().__init__("grpc://127.0.0.1:0")
        self.table = None

    def get_flight_info(self, context, descriptor):
        endpoint = flight.FlightEndpoint(b"rows", [])
        return flight.FlightInfo(self.table.schema, descriptor, [endpoint], self.table.num_rows, -1)

    def do_get(self, context, ticket):
        return flight.RecordBatchStream(self.table)

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
    size = sum(chunk.data.nbytes for chunk in client.do_get(ticket))
    return size / 1e6 / (time.perf_counter() - began)


def select_one(address, count):
    import adbc_driver_flightsql.dbapi as flight_sql

    with flight_sql.connect(f"grpc://{address}", autocommit=True) as connection, connection.cursor() as cursor:
        times = []
        for _ in range(count + 20):
            began = time.perf_counter()
            cursor.execute("SELECT 1")
            cursor.fetchall()
            times.append((time.perf_counter() - began) * 1e3)
    return sorted(times[20:])


def main(command, *args):
    if command == "serve":
        server = Server()
        print(server.port, flush=True)
        server.serve()
    elif command == "select":
        times = select_one(args[0], int(args[1]))
        print(json.dumps({"least": times[0], "p50": times[len(times) // 2]}))
    else:
        table = rows(int(args[0]))
        clients = {address: flight.connect(f"grpc://{address}") for address in args[2:]}
        found = {address: {"put": [], "get": []} for address in clients}
        for _ in range(int(args[1])):
            for address, client in clients.items():
                found[address]["put"].append(put(client, table))
                found[address]["get"].append(get(client))
        print(json.dumps(found))


main(*sys.argv[1:])
