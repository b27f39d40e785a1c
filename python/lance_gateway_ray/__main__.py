"""Runs one job: `python -m lance_gateway_ray --gateway URL --job ID --run N`, as the gateway submits it."""

from __future__ import annotations

import argparse
import sys

from .gateway import Gateway, GoneError, RefusedError, Task
from .key import create_key, key_line
from .progress import reporting_progress
from .spread import is_passing
from .work import KINDS, Result


def main(arguments: list[str] | None = None) -> int:
    """Fetches the task, does it, and reports its result; returns the exit code."""
    parser = argparse.ArgumentParser(prog="lance_gateway_ray")
    parser.add_argument("--gateway", required=True)
    parser.add_argument("--job", required=True)
    parser.add_argument("--run", required=True, type=int)
    options = parser.parse_args(arguments)
    key = create_key()
    # The gateway reads it in the log of this run, and trusts who has the key from then on.
    print(key_line(key), flush=True)
    gateway = Gateway(options.gateway, options.job, options.run, key)
    try:
        task = gateway.describe_task()
    except GoneError as error:
        print(f"the gateway wants no work of this run: {error}", file=sys.stderr)
        return 0
    except RefusedError as error:
        return fail(gateway, error)
    return report(gateway, task)


def report(gateway: Gateway, task: Task) -> int:
    """Does a task and reports how it ended."""
    try:
        result = perform(gateway, task)
    except Exception as error:
        return fail(gateway, error)
    try:
        gateway.finish(result=result)
    except RefusedError as error:
        # It may be larger than a message may be. Another run would do all the work for the same result.
        return fail(gateway, error)
    return 0


def fail(gateway: Gateway, error: Exception) -> int:
    """Reports that a task has failed; returns the exit code."""
    message = f"{type(error).__name__}: {error}"
    gateway.finish(failure={"message": message[:2000], "retryable": is_passing(error)})
    print(message, file=sys.stderr)
    return 1


def perform(gateway: Gateway, task: Task) -> Result:
    """Does a task on the workers of the cluster."""
    work = KINDS.get(task.kind)
    if work is None:
        raise ValueError(f"this driver cannot do {task.kind}; it has {', '.join(sorted(KINDS))}")
    with reporting_progress(gateway):
        return work(task, gateway)


if __name__ == "__main__":
    sys.exit(main())
