"""Commits of pylance through the gateway, which checks and publishes each version itself."""

from __future__ import annotations

from typing import Any

from lance.dataset import LanceDataset
from lance_namespace import (
    CreateTableVersionResponse,
    DescribeTableResponse,
    DescribeTableVersionResponse,
    LanceNamespace,
    ListTableVersionsResponse,
    TableVersion,
)
from lance_namespace.errors import ConcurrentModificationError, TableVersionNotFoundError

from .gateway import Gateway, GoneError, Json, RefusedError, Task

CONFLICT = 409


class GatewayCommits(LanceNamespace):
    """A catalog of the one table of a task, as far as pylance needs one in order to commit."""

    def __init__(self, gateway: Gateway, task: Task) -> None:
        self._gateway = gateway
        self._task = task
        self.rewrite: Json | None = None
        """What the next versions rewrite; see `DriverRewrite` in the gateway's contract."""
        self.refusal: RefusedError | None = None
        """Why the gateway has refused a version that it would refuse again; pylance does not pass this on."""

    def namespace_id(self) -> str:
        return "lance-gateway-driver"

    def describe_table(self, request: Any) -> DescribeTableResponse:
        options = self._task.storage_options
        return DescribeTableResponse(location=self._task.uri, storage_options=options, managed_versioning=True)

    def list_table_versions(self, request: Any) -> ListTableVersionsResponse:
        newest = self._gateway.describe_version()
        return ListTableVersionsResponse(versions=[] if newest is None else [table_version(newest)])

    def describe_table_version(self, request: Any) -> DescribeTableVersionResponse:
        try:
            found = self._gateway.describe_version(request.get("version"))
        except GoneError as error:
            raise TableVersionNotFoundError(str(error)) from None
        if found is None:
            raise TableVersionNotFoundError("the table has no version")
        return DescribeTableVersionResponse(version=table_version(found))

    def create_table_version(self, request: Any) -> CreateTableVersionResponse:
        try:
            made = self._gateway.commit(
                int(request["version"]), request["manifest_path"], request.get("manifest_size"), self.rewrite
            )
        except RefusedError as error:
            if error.status == CONFLICT:
                raise ConcurrentModificationError(str(error)) from None
            self.refusal = error
            raise
        return CreateTableVersionResponse(version=table_version(made))


def table_version(found: Json) -> TableVersion:
    """Returns a version as the gateway describes it."""
    return TableVersion(
        version=int(found["version"]),
        manifest_path=found["manifest_path"],
        manifest_size=found.get("manifest_size"),
        e_tag=found.get("e_tag"),
    )


def open_through(commits: GatewayCommits, task: Task) -> LanceDataset:
    """Opens the newest version of the table of a task so that the gateway commits."""
    return LanceDataset(task.uri, storage_options=task.storage_options, **through(commits))


def through(commits: GatewayCommits) -> Json:
    """Returns the options with which pylance has the gateway commit."""
    return {
        "namespace_client": commits,
        "table_id": ["table"],
        "namespace_client_managed_versioning": True,
    }


def commit_once(task: Task, gateway: Gateway, operation: Any, version: int | None, message: str, rows: int) -> Json:
    """Commits an operation with that many rows on a version of the table; returns the result of the job, which is that of its earlier commit if there is one."""
    try:
        made = LanceDataset.commit(
            task.uri,
            operation,
            read_version=version,
            storage_options=task.storage_options,
            commit_message=message,
            **through(GatewayCommits(gateway, task)),
        )
    except Exception:
        # The answer to a commit may have been lost, and the gateway refuses a second one.
        done = gateway.describe_task().details.get("committed")
        if done is None:
            raise
        return dict(done)
    return {"rows": rows, "version": made.version}
