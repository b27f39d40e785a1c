"""Random work on a table."""

from .changes import Changes
from .reads import Reads


class Work(Changes, Reads):
    """A session of random work on the table `t`, with a schema of its own."""

    def step(self):
        """Returns the name of a step, the work, and whether it may change the table."""
        rng = self.rng
        kind = rng.choice(["add", "add", "odd add", "overwrite", "delete", "update", "merge", "merge", "columns", "alter", "drop", "history", "tag", "branch", "index", "index", "count", "count", "scan", "scan", "scan", "scan", "vector", "vector", "vector", "fts", "hybrid", "info", "create"])
        return getattr(self, "do_" + kind.replace(" ", "_"))()
