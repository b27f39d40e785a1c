"""The calls of a driver to its gateway, over REST."""

from __future__ import annotations

import json
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any, Callable

Json = dict[str, Any]

PATIENCE_SECONDS = 900.0
"""How long a call is repeated while no gateway answers, or one that is busy: one may be restarting."""

PASSING = frozenset((429, 502, 503, 504))
"""Statuses of a gateway that is busy, and of the proxies in front of one that does not answer."""

MAX_FAULTS = 4
"""How often a call is sent that fails in the gateway itself: by then the fault is not one that passes."""

ANSWER_SECONDS = 60.0


class GoneError(Exception):
    """The gateway takes nothing from this run any more: its job has ended, or another run does it."""


class RefusedError(ValueError):
    """The gateway refuses a call, and would refuse it again."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Task:
    """What a driver has to do."""

    kind: str
    uri: str
    details: Json
    storage_options: dict[str, str] = field(default_factory=dict)

    @property
    def workers(self) -> int:
        """The number of workers of the cluster to spread the work over."""
        return int(self.details.get("workers", 1))


class Gateway:
    """A gateway, as the driver of one run sees it."""

    def __init__(
        self,
        url: str,
        job: str,
        run: int,
        key: str,
        *,
        patience: float = PATIENCE_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._url = url.rstrip("/")
        self._place: Json = {"job_id": job, "run": run}
        self._key = key
        self._patience = patience
        self._sleep = sleep

    def describe_task(self) -> Task:
        """Returns the task; waits until the gateway has found the digest of the key in the log."""
        answer = self._send("describe", {}, self._patience)
        return Task(
            kind=answer["kind"],
            uri=answer["uri"],
            details=answer.get("task", {}),
            storage_options=answer.get("storage_options", {}),
        )

    def describe_version(self, version: int | None = None) -> Json | None:
        """Returns a version of the table, by default the newest one; None if there is none."""
        body = {} if version is None else {"version": version}
        found = self._send("describe_version", body, self._patience).get("version")
        return found if isinstance(found, dict) else None

    def commit(
        self, version: int, manifest_path: str, manifest_size: int | None, rewrite: Json | None = None
    ) -> Json:
        """Has the gateway publish a staged manifest as the next version, which it returns."""
        body = {"version": version, "manifest_path": manifest_path}
        size = {} if manifest_size is None else {"manifest_size": manifest_size}
        rewritten = {} if rewrite is None else {"rewrite": rewrite}
        made: Json = self._send("commit", {**body, **size, **rewritten}, self._patience)["version"]
        return made

    def progress(self, step: str, done: int = 0, total: int = 0) -> None:
        """Reports how far the run is; a report that is lost costs nothing."""
        try:
            self._send("progress", {"progress": {"step": step, "done": done, "total": total}}, 0)
        except (GoneError, OSError, ValueError) as error:
            print(f"progress was not reported: {error}", file=sys.stderr)

    def finish(self, *, result: Json | None = None, failure: Json | None = None) -> None:
        """Reports the end of the run."""
        report = {"result": result} if failure is None else {"failure": failure}
        try:
            self._send("finish", report, self._patience)
        except GoneError as error:
            print(f"the gateway does not take the result: {error}", file=sys.stderr)

    def _send(self, call: str, body: Json, patience: float) -> Json:
        deadline = time.monotonic() + patience
        pause = 0.25
        faults = 0
        while True:
            try:
                return self._once(call, body)
            except urllib.error.HTTPError as error:
                text = message_of(error)
                if error.code in (401, 403, 404):
                    raise GoneError(text) from None
                if error.code not in PASSING and (error.code < 500 or error.code == 501):
                    raise RefusedError(error.code, f"the gateway refuses {call}: {text}") from None
                reason: Exception = OSError(f"{error.code}: {text}")
                faults += error.code not in PASSING
                if faults == MAX_FAULTS:
                    raise reason from None
            except OSError as error:
                reason = error
            if time.monotonic() + pause > deadline:
                raise reason
            self._sleep(pause)
            pause = min(pause * 1.5, 10.0)

    def _once(self, call: str, body: Json) -> Json:
        request = urllib.request.Request(
            f"{self._url}/v1/drivers/{call}",
            data=json.dumps({**self._place, **body}).encode(),
            headers={"content-type": "application/json", "authorization": f"Bearer {self._key}"},
        )
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            found = json.loads(answer.read() or b"{}")
        return found if isinstance(found, dict) else {}


def message_of(error: urllib.error.HTTPError) -> str:
    """Returns the message of an error of the gateway."""
    try:
        found = json.loads(error.read())
        return str(found.get("error") or found.get("detail") or found)
    except (ValueError, AttributeError, OSError):
        return str(error)
