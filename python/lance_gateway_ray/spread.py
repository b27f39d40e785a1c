"""Work in equal parts on the workers of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from .gateway import Gateway

PARTS_FOR_EACH_WORKER = 4
"""More parts than workers keep all of them busy to the end, and show progress."""


class Sized(Protocol):
    """A piece of work of a known size."""

    @property
    def size(self) -> int: ...


Piece = TypeVar("Piece", bound=Sized)


def split_evenly(pieces: Sequence[Piece], count: int) -> list[list[Piece]]:
    """Returns parts of about the same size, in the order of the pieces; none is empty."""
    limit = sum(piece.size for piece in pieces) / max(1, min(count, len(pieces)))
    parts: list[list[Piece]] = []
    filled = 0
    for piece in pieces:
        if not parts or filled + piece.size / 2 > limit * len(parts):
            parts.append([])
        parts[-1].append(piece)
        filled += piece.size
    return parts


@dataclass(frozen=True)
class SizedFragment:
    """A fragment of a table, and its number of rows."""

    id: int
    size: int


def split_fragments(dataset: Any, workers: int) -> list[list[SizedFragment]]:
    """Returns the fragments of a version of a table in parts for workers."""
    fragments = [SizedFragment(each.fragment_id, each.physical_rows) for each in dataset.get_fragments()]
    return split_evenly(fragments, workers * PARTS_FOR_EACH_WORKER)


def spread(gateway: Gateway, step: str, remote: Any, parts: Sequence[Any], workers: int, *common: Any) -> list[Any]:
    """Calls a remote function with each part, at most as many at a time as there are workers; returns the results in order."""
    results: dict[int, Any] = {}
    running: dict[Any, int] = {}
    waiting = list(enumerate(parts))
    gateway.progress(step, 0, len(parts))
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                number, part = waiting.pop(0)
                running[remote.remote(part, *common)] = number
            [done], _ = ray.wait(list(running), num_returns=1)
            results[running.pop(done)] = ray.get(done)
            gateway.progress(step, len(results), len(parts))
    except RayTaskError as error:
        cancel(running)
        # Its own text is a trace of the worker.
        raise error.cause from None
    except BaseException:
        cancel(running)
        raise
    return [results[number] for number in range(len(parts))]


def cancel(tasks: Iterable[Any]) -> None:
    """Ends tasks that are running."""
    for task in tasks:
        ray.cancel(task, force=True)


def passing_cause(error: BaseException) -> OSError | RayError | None:
    """Returns what has failed besides the request, the network or a worker; None if it was the request."""
    if isinstance(error, (OSError, RayError)) and not isinstance(error, RayTaskError):
        return error
    # The function of a worker has failed, and not the worker; or lance-ray says in its own words what has failed.
    cause = error.cause if isinstance(error, RayTaskError) else error.__cause__
    return None if cause is None else passing_cause(cause)


def is_passing(error: BaseException) -> bool:
    """Whether work may succeed if it is done once more."""
    return passing_cause(error) is not None
