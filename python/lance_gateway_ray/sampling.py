"""The rows from which the centroids of an index are trained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lance.indices import IndicesBuilder
from lance_ray.index import _NestedVectorIndicesBuilder

LEAST_RATE = 2
"""The least number of rows for each centroid that the builders take."""


@contextmanager
def sampling_existing_rows() -> Iterator[None]:
    """Has each training sample as many rows as the table has, at most. The builders refuse larger samples, and lance-ray gives them one
    rate for partitions and for the codes of a product quantizer, so that a rate for the codes would leave few rows for the partitions."""
    builders = (IndicesBuilder, _NestedVectorIndicesBuilder)
    originals = [(builder, builder.train_ivf, builder.train_pq) for builder in builders]
    for builder, train_ivf, train_pq in originals:
        builder.train_ivf = _sampling_partitions(train_ivf)
        builder.train_pq = _sampling_codes(train_pq)
    try:
        yield
    finally:
        for builder, train_ivf, train_pq in originals:
            builder.train_ivf, builder.train_pq = train_ivf, train_pq


def _sampling_partitions(train: Any) -> Any:
    def train_ivf(self: Any, num_partitions: int, *, sample_rate: int, **options: Any) -> Any:
        rate = rate_for(self.dataset.count_rows(), num_partitions, sample_rate)
        return train(self, num_partitions, sample_rate=rate, **options)

    return train_ivf


def _sampling_codes(train: Any) -> Any:
    def train_pq(self: Any, ivf: Any, *, sample_rate: int, num_bits: int = 8, **options: Any) -> Any:
        rate = rate_for(self.dataset.count_rows(), 2**num_bits, sample_rate)
        return train(self, ivf, sample_rate=rate, num_bits=num_bits, **options)

    return train_pq


def rate_for(rows: int, centroids: int, wanted: int) -> int:
    """Returns how many rows are sampled for each centroid."""
    return max(LEAST_RATE, min(wanted, rows // centroids))
