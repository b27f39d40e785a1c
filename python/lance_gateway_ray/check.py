"""Checks a cluster before a gateway uses it: `python -m lance_gateway_ray.check --gateway URL`, as a job of the cluster."""

from __future__ import annotations

import argparse
import platform
import sys
import urllib.request
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

PACKAGES = ("lance-gateway-ray", "lance-ray", "pylance", "pyarrow", "ray")
"""Packages whose versions must be the same on all nodes."""

ANSWER_SECONDS = 10.0
NODE_SECONDS = 120.0
"""How long the answers of all nodes are waited for: a worker process has to start on each."""


def describe_node(url: str) -> dict[str, str]:
    """Returns the versions that a node has, and under `gateway` how the gateway answers it."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    try:
        # All that a driver needs, which the package alone does not prove.
        import lance_gateway_ray.work  # noqa: F401

        with urllib.request.urlopen(f"{url.rstrip('/')}/healthz", timeout=ANSWER_SECONDS) as answer:
            found["gateway"] = "answers" if answer.status == 200 else f"answers {answer.status}"
    except (OSError, ValueError, ImportError) as error:
        found["gateway"] = f"{type(error).__name__}: {error}"
    return found


def mistakes_of(nodes: dict[str, dict[str, str]]) -> list[str]:
    """Returns what is wrong with nodes, given by their names."""
    mistakes: list[str] = []
    first_name, first = next(iter(nodes.items()))
    for name, node in nodes.items():
        if node["gateway"] != "answers":
            mistakes.append(f"{name} cannot work for the gateway: {node['gateway']}")
        for package in ("python", *PACKAGES):
            if node[package] == "missing":
                mistakes.append(f"{name} has no {package}")
            elif node[package] != first[package] and first[package] != "missing":
                mistakes.append(f"{name} has {package} {node[package]}, and {first_name} {first[package]}")
    return mistakes


def ask_nodes(url: str) -> dict[str, dict[str, str]]:
    """Has each node of the cluster describe itself."""
    remote = ray.remote(num_cpus=0, max_retries=0)(describe_node)
    asked: dict[str, Any] = {}
    for node in ray.nodes():
        if not node["Alive"]:
            continue
        place = NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
        name = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
        asked[name] = remote.options(scheduling_strategy=place).remote(url)
    return dict(zip(asked, ray.get(list(asked.values()), timeout=NODE_SECONDS)))


def main(arguments: list[str] | None = None) -> int:
    """Prints a line for each node and each mistake; returns the exit code."""
    parser = argparse.ArgumentParser(prog="lance_gateway_ray.check")
    parser.add_argument("--gateway", required=True)
    options = parser.parse_args(arguments)
    ray.init(log_to_driver=False)
    nodes = ask_nodes(options.gateway)
    for name, node in nodes.items():
        print(f"{name}: {', '.join(f'{key} {value}' for key, value in node.items())}")
    mistakes = mistakes_of(nodes)
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
