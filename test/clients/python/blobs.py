"""Tables with blobs, through LanceDB's remote client beside the same code on a local directory."""

import sys
import tempfile

import lancedb
import pyarrow as pa

SCHEMA = pa.schema([pa.field("id", pa.int64()), lancedb.blob("video")])
LARGE = bytes(range(256)) * 40_000


def failure(call):
    """Returns the kind of a failure, or the result."""
    try:
        return call()
    except (ValueError, RuntimeError) as error:
        return "fails" if error else None


def work(db):
    """Does everything that clients do with blobs, and yields the name and the result of each step."""
    table = db.create_table("clips", schema=SCHEMA)
    rows = [(0, b"alpha"), (1, None), (2, b""), (3, LARGE), (4, b"x" * 100_000)]
    table.add([{"id": id, "video": video} for id, video in rows])
    yield "blob_columns", table.blob_columns()
    yield "schema", table.schema.names
    hits = table.search().with_row_id(True).to_arrow()
    yield "descriptors", hits["video"].to_pylist()
    ids = hits["_rowid"].to_pylist()
    yield "fetch_blobs", table.fetch_blobs("video", ids).to_pylist()
    yield "fetch_blobs of hits", table.fetch_blobs("video", table.search().where("id > 2").to_arrow()).to_pylist()
    yield "repeated", table.fetch_blobs("video", [ids[2], ids[0], ids[0]]).to_pylist()
    files = table.fetch_blob_files("video", ids)
    yield "sizes", [file and file.size() for file in files]
    yield "whole", [file and file.read() for file in files]
    yield "range", files[3].read_range(5_000_000, 1_000)
    files[3].seek(len(LARGE) - 10)
    yield "after a seek", files[3].read()
    files[4].seek(7)
    yield "in steps", [files[4].read(10), files[4].read(20), files[4].tell()]
    yield "another column", failure(lambda: table.fetch_blobs("id", ids))
    yield "a missing column", failure(lambda: table.fetch_blobs("missing", ids))
    yield "a missing row", failure(lambda: table.fetch_blobs("video", [77]))
    yield "a file of a missing row", failure(lambda: table.fetch_blob_files("video", [77]))
    yield "a file elsewhere", failure(lambda: table.add(pa.table({"id": [9], "video": URI})))
    yield "update", failure(lambda: table.update(where="id = 0", values={"video": b"new"}))
    first = table.version
    merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute([{"id": 0, "video": b"merged"}, {"id": 5, "video": b"more"}])
    table.delete("id = 1")
    hits = table.search().with_row_id(True).to_arrow()
    blobs = table.fetch_blobs("video", hits["_rowid"].to_pylist()).to_pylist()
    yield "after changes", sorted(zip(hits["id"].to_pylist(), blobs))
    table.checkout(first)
    yield "an older version", table.fetch_blobs("video", [ids[0]]).to_pylist()


URI = pa.array([{"data": None, "uri": "file:///etc/hostname"}], SCHEMA.field("video").type.storage_type)

remote = lancedb.connect("db://shop", api_key="k", host_override=sys.argv[1])
with tempfile.TemporaryDirectory() as folder:
    pairs = zip(work(remote), work(lancedb.connect(folder)), strict=True)
    different = [name for (name, there), (_, here) in pairs if there != here]
if different:
    raise SystemExit(f"differs from a local directory: {', '.join(different)}")

# A file that another writer has named in the table stays where it is.
beside = lancedb.connect(sys.argv[2]).open_table("clips")
beside.add(pa.table({"id": [9], "video": URI}), allow_external_blob_outside_bases=True)
clips = remote.open_table("clips")
hits = clips.search().where("id = 9").with_row_id(True).to_arrow()
for read in [clips.fetch_blobs, clips.fetch_blob_files]:
    try:
        raise SystemExit(f"reads a file outside of the table: {read('video', hits['_rowid'].to_pylist())}")
    except RuntimeError as error:
        assert "stored outside of the table" in str(error), error
