import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { sendHttp } from "../support/http.ts";
import { type Program, startProgram } from "../support/program.ts";

test("the program reports its decisions about an upstream in its metrics and in its log", async (t) => {
  const { path, remove } = await temporaryDirectory();
  const programs: Program[] = [];
  t.onTestFinished(async () => {
    for (const { child } of programs) child.kill("SIGKILL");
    await remove();
  });
  function start(...args: string[]): Program {
    const program = startProgram("serve", "--port", "0", ...args);
    programs.push(program);
    return program;
  }

  const below = await start("--root", join(path, "root"), "--no-metrics").listening();
  const file = join(path, "gateway.yaml");
  const upstream = `{ backend: rest, uri: "http://127.0.0.1:${below}"`;
  await writeFile(
    file,
    `databases:\n  kept: ${upstream}, upstream-cache-ttl: 1h }\n  asked: ${upstream} }\n`,
  );
  const gateway = start("--config", file, "--log-level", "debug");
  const port = await gateway.listening();

  await sendHttp(below, { path: "/v1/namespace/n/create", body: "{}" });
  for (const database of ["kept", "kept", "asked", "asked"]) {
    const headers = { "x-service-database": database, "content-type": "application/json" };
    const { status } = await sendHttp(port, { path: "/v1/namespace/n/describe", headers, body: "{}" });
    assert.equal(status, 200);
  }

  const metrics = await sendHttp(port, { method: "GET", path: "/metrics" });
  const decisions = metrics.bytes.toString().match(/^lance_gateway_upstream_decisions_total.*$/gm);
  assert.deepEqual(decisions, [
    'lance_gateway_upstream_decisions_total{database="kept",decision="cache_miss"} 1',
    'lance_gateway_upstream_decisions_total{database="kept",decision="cache_hit"} 1',
  ]);
  assert.equal((await sendHttp(below, { method: "GET", path: "/metrics" })).status, 404);

  gateway.child.kill("SIGTERM");
  const { stderr } = await gateway.ended;
  const calls = stderr
    .split("\n")
    .filter((line) => line.includes('"msg":"call"'))
    .map((line) => JSON.parse(line) as { database: string; upstream?: string[] });
  assert.deepEqual(
    calls.map(({ database, upstream }) => [database, upstream]),
    [
      ["kept", ["cache_miss"]],
      ["kept", ["cache_hit"]],
      ["asked", undefined],
      ["asked", undefined],
    ],
  );
});
