import { symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "vitest";
import { pythonInterpreter } from "../../scripts/python-environment.ts";
import { runPage } from "../clients/pages/session.ts";
import { sparkJars } from "./spark-jars.ts";

const path = () => [dirname(pythonInterpreter("engines"))];

test("docs/how-to/ray.md does what it says", async () => {
  await runPage("docs/how-to/ray.md", { path: path() });
});

test("docs/how-to/langchain-and-llamaindex.md does what it says", async () => {
  await runPage("docs/how-to/langchain-and-llamaindex.md", { path: path() });
});

test("docs/how-to/spark.md does what it says", async () => {
  const jars = await sparkJars();
  await runPage("docs/how-to/spark.md", {
    path: path(),
    prepare: (folder) => symlinkSync(jars, join(folder, "jars")),
  });
});
