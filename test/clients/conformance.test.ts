import assert from "node:assert/strict";
import { join } from "node:path";
import { it } from "vitest";
import { conformanceTools, sourceOf } from "./support/conformance-tools.ts";
import { ROOT, runTool } from "./support/tools.ts";

const folder = join(import.meta.dirname, "conformance");

/** A run of fewer cases has left a protocol out. */
const LEAST_CASES = 1_700;

it("passes the Connect conformance suite over gRPC, gRPC-Web and Connect", async (t) => {
  const bin = await conformanceTools();
  const descriptors = join(ROOT, ".cache", "conformance.binpb");
  const protos = join(await sourceOf("connectrpc.com/conformance"), "proto");
  const buf = join(ROOT, "node_modules", ".bin", "buf");
  await runTool(buf, ["build", protos, "--exclude-source-info", "-o", descriptors]);

  const server = [process.execPath, join(folder, "server.ts"), descriptors];
  const options = ["--mode", "server", "--conf", join(folder, "config.yaml")];
  const output = await runTool(join(bin, "connectconformance"), [...options, "--", ...server]);
  const [, passed] = /(\d+) passed, 0 failed/.exec(output) ?? [];
  await t.annotate(`${passed} cases passed`);
  assert.ok(Number(passed) >= LEAST_CASES, output.slice(-4_000));
});
