import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { dirname } from "node:path";
import { test } from "vitest";
import { pythonInterpreter } from "../../../scripts/python-environment.ts";
import { goPluginsFolder } from "../support/go-plugins.ts";
import { grpcurlFolder } from "../support/grpcurl.ts";
import { startAzure, startS3 } from "../support/store-servers.ts";
import { ROOT } from "../support/tools.ts";
import { type PageOptions, runPage } from "./session.ts";

/** Opens what a page takes for granted. */
type Ground = (onTestFinished: (close: () => Promise<void>) => void) => Promise<PageOptions>;

const python = () => dirname(pythonInterpreter());

const withPython: Ground = async () => ({ path: [python()] });
const withGrpcurl: Ground = async () => ({ path: [python(), await grpcurlFolder()] });
const withGo: Ground = async () => ({ path: [python(), await grpcurlFolder(), await goPluginsFolder()] });

/** Opens an S3 server, with the keys and the bucket that the page names. */
const withS3: Ground = async (onTestFinished) => {
  const server = await startS3();
  onTestFinished(server.close);
  return { path: [python()], ports: { 9000: server.port } };
};

const withAzure: Ground = async (onTestFinished) => {
  const server = await startAzure();
  onTestFinished(server.close);
  return { path: [python()], ports: { 10000: server.port } };
};

const PAGES: Readonly<Record<string, Ground>> = {
  "docs/first-keys.md": withPython,
  "docs/install.md": withPython,
  "docs/tutorials/first-catalog.md": withPython,
  "docs/tutorials/from-the-rust-adapter.md": withPython,
  "docs/tutorials/grpc.md": withGo,
  "docs/tutorials/lancedb.md": withPython,
  "docs/tutorials/several-databases.md": withGrpcurl,
  "docs/tutorials/sidecar.md": withGrpcurl,
  "docs/how-to/azure.md": withAzure,
  "docs/how-to/backup-and-restore.md": withPython,
  "docs/how-to/embed-in-fastify.md": withPython,
  "docs/how-to/gcs.md": withPython,
  "docs/how-to/s3.md": withS3,
  "docs/how-to/tls.md": withPython,
  "docs/how-to/upgrade.md": withPython,
  "docs/how-to/vending.md": withS3,
};

/** Pages that run with the engines, in `test/engines/pages.test.ts`. */
const OF_ENGINES = ["docs/how-to/ray.md", "docs/how-to/spark.md"];

for (const [page, open] of Object.entries(PAGES))
  test(`${page} does what it says`, async ({ onTestFinished }) => {
    await runPage(page, await open(onTestFinished));
  });

test("every tutorial and how-to runs", () => {
  const pages = globSync("docs/{tutorials,how-to}/*.md", { cwd: ROOT }).sort();
  const run = [...Object.keys(PAGES), ...OF_ENGINES].filter((page) => dirname(page) !== "docs");
  assert.deepEqual(run.sort(), pages);
});
