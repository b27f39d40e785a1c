import assert from "node:assert/strict";
import { test } from "vitest";
import { readConfiguration } from "./configuration.ts";
import { environmentLayer } from "./layers.ts";
import { addSecrets } from "./secrets.ts";

test("a secret of a changed configuration is added once, however often the configuration is read", async () => {
  const secrets: string[] = [];
  for (const token of ["first-secret", "second-secret", "second-secret"]) {
    const environment = { LANCE_GATEWAY_UPSTREAM_TOKEN: token, OTHER_TOKEN: "of-others" };
    addSecrets(secrets, await readConfiguration([environmentLayer(environment)], environment), environment);
  }
  assert.deepEqual(secrets.toSorted(), ["first-secret", "of-others", "second-secret"]);
});
