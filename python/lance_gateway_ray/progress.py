"""Progress of lance-ray's functions, which say in their logs what they do."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from .gateway import Gateway

LOGGER = "lance_ray"


class _Phases(logging.Handler):
    def __init__(self, gateway: Gateway) -> None:
        super().__init__(logging.INFO)
        self._gateway = gateway

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text.startswith("Phase "):
            self._gateway.progress(text)


@contextmanager
def reporting_progress(gateway: Gateway) -> Iterator[None]:
    """Reports the phases of lance-ray's work to a gateway."""
    logger = logging.getLogger(LOGGER)
    handler = _Phases(gateway)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
