import assert from "node:assert/strict";
import { test } from "vitest";
import { inFastTime } from "../../../../../test/support/fast-time.ts";
import { createOptionReader } from "../storage-options.ts";
import { identityOf } from "./client.ts";

for (const [header, value] of [
  ["retry-after", "3600"],
  ["retry-after", new Date(Date.now() + 3_600_000).toUTCString()],
  ["x-ms-retry-after-ms", "3600000"],
] as const)
  test(`a service of tokens that asks for an hour by ${header}: ${value} does not hold up the calls that wait`, async () => {
    let asked = 0;
    const options = { tenant_id: "tenant", client_id: "client", client_secret: "secret" };
    const identity = await identityOf(createOptionReader(options, []), {
      async sendRequest(request) {
        asked += 1;
        // The library makes headers only for requests.
        request.headers.set(header, value);
        return { request, status: 503, headers: request.headers };
      },
    });
    await inFastTime(async () => {
      const start = Date.now();
      await assert.rejects(identity.getToken("https://storage.azure.com/.default"));
      assert.ok(Date.now() - start < 60_000);
    });
    assert.ok(asked > 1);
  });
