"""Tests of what deploy/ starts: Ray's own parser reads the command lines, and nothing is started."""

import unittest
from pathlib import Path

import yaml
from ray.scripts.scripts import start

DEPLOY = Path(__file__).parents[2] / "deploy"


def parsed(arguments):
    return start.make_context("start", list(arguments)).params


class TestDeployment(unittest.TestCase):
    def test_ray_accepts_the_command_of_the_compose_file(self):
        service = yaml.safe_load((DEPLOY / "compose/ray.yaml").read_text())["services"]["ray"]
        program, command, *arguments = service["command"]
        self.assertEqual((program, command), ("ray", "start"))
        options = parsed(arguments)
        self.assertEqual((options["head"], options["block"], options["num_cpus"]), (True, True, 2))
        # The defaults of the ports that the gateway and the health check use.
        self.assertEqual((options["dashboard_port"], options["dashboard_agent_listen_port"]), (8265, 52365))
        compile(service["healthcheck"]["test"][-1], "healthcheck", "exec")

    def test_ray_accepts_the_parameters_of_the_cluster(self):
        cluster = next(yaml.safe_load_all((DEPLOY / "kubernetes/ray.yaml").read_text()))["spec"]
        groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
        options = [parsed(f"--{name}={value}" for name, value in each["rayStartParams"].items()) for each in groups]
        self.assertEqual([each["num_cpus"] for each in options], [0, None])


if __name__ == "__main__":
    unittest.main()
