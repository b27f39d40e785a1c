import assert from "node:assert/strict";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { ERROR_TABLE } from "../../src/namespace/errors.ts";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { runPython } from "./support/python.ts";
import { ROOT } from "./support/tools.ts";

/** Requests of each operation that fit the document; half as many that do not come on top. */
const EXAMPLES = 26;

describe("requests generated from the public OpenAPI document", () => {
  let gateway: GatewayProcess;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  it("get no 5xx and no answer outside the error table", async (t) => {
    const document = join(ROOT, "test", "spec", "lance-namespace-0.11.1.yaml");
    const errors = JSON.stringify(ERROR_TABLE.map(({ code, httpStatus }) => ({ code, httpStatus })));
    const output = await runPython("fuzz.py", gateway.uri, document, errors, String(EXAMPLES));
    await t.annotate(output);
    const { operations, requests, successes } = JSON.parse(output);
    assert.equal(operations, 54);
    assert.ok(requests > 1500 && successes > 200, output);
  });
});
