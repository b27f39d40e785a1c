"""A blob that another writer has named outside of its table stays where it is."""

import sys

import lancedb
import pyarrow as pa

SCHEMA = pa.schema([pa.field("id", pa.int64()), lancedb.blob("video")])
OUTSIDE = pa.array([{"data": None, "uri": "file:///etc/hostname"}], SCHEMA.field("video").type.storage_type)

uri, base = sys.argv[1:]
remote = lancedb.connect("db://shop", api_key="k", host_override=uri)
remote.create_table("clips", schema=SCHEMA)
beside = lancedb.connect(base).open_table("clips")
beside.add(pa.table({"id": [9], "video": OUTSIDE}), allow_external_blob_outside_bases=True)
clips = remote.open_table("clips")
hits = clips.search().with_row_id(True).to_arrow()
for read in [clips.fetch_blobs, clips.fetch_blob_files]:
    try:
        raise SystemExit(f"reads a file outside of the table: {read('video', hits['_rowid'].to_pylist())}")
    except RuntimeError as error:
        assert "stored outside of the table" in str(error), error
