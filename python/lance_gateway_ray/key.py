"""The key of a run. The driver makes it, and only its digest leaves the process by the log."""

from __future__ import annotations

import hashlib
import secrets

PREFIX = "lance-gateway-driver-key sha256:"


def create_key() -> str:
    """Returns a new key."""
    return secrets.token_urlsafe(32)


def key_line(key: str) -> str:
    """Returns the line of the log that shows the digest of a key."""
    return PREFIX + hashlib.sha256(key.encode()).hexdigest()
