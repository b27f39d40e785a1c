import assert from "node:assert/strict";
import { test } from "vitest";
import * as parts from "./undici.ts";

test("the files of undici have what its entry exports", async () => {
  const whole = await import("undici");
  const { buildConnector, Client, errors, Pool } = whole;
  assert.deepEqual({ ...parts }, { buildConnector, Client, errors, Pool });
});
