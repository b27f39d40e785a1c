import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { startGateway } from "./support/gateway.ts";

test("promtool finds nothing to say about the names and the help of the metrics", async (t) => {
  const gateway = await startGateway();
  t.onTestFinished(() => gateway.close());
  await fetch(`${gateway.uri}/v1/namespace/%24/list`);
  const page = await (await fetch(`${gateway.uri}/metrics`)).text();
  expect(page).toContain("lance_gateway_calls_total{");
  // Its warnings are on standard error, and make it fail.
  expect(execFileSync("promtool", ["check", "metrics"], { input: page, encoding: "utf8" })).toBe("");
});
