"""The parts of a build of IVF_PQ on a cluster, with the calls of lance-ray, in seconds of computing.

    peer.py FOLDER ROWS N,N,… PARTITIONS    writes a table of random vectors of 768 dimensions; prints JSON with the parts: training of
                                            each number N of centroids, of the codes' books, and the work on a row of an index with
                                            so many partitions
"""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import lance
import numpy
import pyarrow
from lance.indices import IndicesBuilder, IvfModel

DIMENSIONS = 768
BATCH = 16_384


def write(folder: str, rows: int) -> lance.LanceDataset:
    """Clusters of vectors, as of a model, so that training ends as it does with real ones."""
    random = numpy.random.default_rng(1)
    centers = random.standard_normal((rows // 256, DIMENSIONS)).astype("float32")
    vector = pyarrow.list_(pyarrow.float32(), DIMENSIONS)

    def batches() -> Any:
        for start in range(0, rows, BATCH):
            count = min(BATCH, rows - start)
            near = centers[random.integers(len(centers), size=count)]
            values = near + 0.5 * random.standard_normal((count, DIMENSIONS)).astype("float32")
            array = pyarrow.FixedSizeListArray.from_arrays(values.ravel(), DIMENSIONS)
            yield pyarrow.record_batch([array], schema=schema)

    schema = pyarrow.schema([("vector", vector)])
    reader = pyarrow.RecordBatchReader.from_batches(schema, batches())
    return lance.write_dataset(reader, os.path.join(folder, "vectors.lance"), max_rows_per_file=rows // 4)


def measured(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def build(dataset: lance.LanceDataset, trained: list[int], partitions: int) -> dict[str, Any]:
    builder = IndicesBuilder(dataset, "vector")
    training = [{"partitions": count, "seconds": measured(lambda: builder.train_ivf(count))[0]} for count in trained]
    # Where the centroids are makes no difference to the work on a row.
    centroids = dataset.sample(partitions, columns=["vector"])["vector"].combine_chunks()
    ivf = IvfModel(centroids, "l2")
    books, pq = measured(lambda: builder.train_pq(ivf))
    fragment = dataset.get_fragments()[0]
    options = {
        "num_partitions": partitions,
        "num_sub_vectors": pq.num_subvectors,
        "ivf_centroids": centroids,
        "pq_codebook": pq.codebook,
    }
    ids = [fragment.fragment_id]
    segment, _ = measured(
        lambda: dataset.create_index_uncommitted("vector", "IVF_PQ", fragment_ids=ids, metric="l2", **options)
    )
    return {"training": training, "books": books, "row": segment / fragment.count_rows()}


if __name__ == "__main__":
    folder, rows, trained, partitions = sys.argv[1:]
    table = write(folder, int(rows))
    print(json.dumps(build(table, [int(count) for count in trained.split(",")], int(partitions))))
