"""Creates the table that the session of JDBC reads."""

import sys

import pyarrow as pa
import pyarrow.flight as flight

client = flight.connect(f"grpc://{sys.argv[1]}")
rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", "c"]})
writer, results = client.do_put(flight.FlightDescriptor.for_path("people"), rows.schema)
writer.write_metadata(b'{"write": "create"}')
writer.write_table(rows)
writer.done_writing()
results.read()
writer.close()
