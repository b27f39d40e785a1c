import assert from "node:assert/strict";
import { test } from "vitest";
import { failsWith } from "../../../../test/fixtures/dir/directory-backend.ts";
import { checkUpkeepProperties, DEFAULT_POLICY, policyOf } from "./policy.ts";

test("properties of a table override the policy", () => {
  const policy = policyOf(DEFAULT_POLICY, {
    "lance-gateway.upkeep": "off",
    "lance-gateway.upkeep.fragments": "4",
    "lance-gateway.upkeep.retention": "90m",
    "lance-gateway.upkeep.history": "all",
    "lance-gateway.upkeep.max-versions": "7",
    "lance-gateway.upkeep.unindexed-rows": "5",
    "lance-gateway.upkeep.deleted-percent": "50",
    owner: "me",
  });
  assert.deepEqual(policy, {
    enabled: false,
    fragments: 4,
    unindexedRows: 5,
    deletedPercent: 50,
    retentionMs: 90 * 60_000,
    history: "all",
    maxVersions: 7,
  });
});

test("a property that another writer set wrongly is reported and ignored", () => {
  const reasons: string[] = [];
  const properties = {
    "lance-gateway.upkeep": "yes",
    "lance-gateway.upkeep.fragments": "1",
    "lance-gateway.upkeep.retention": "-1d",
    "lance-gateway.upkeep.history": "some",
    "lance-gateway.upkeep.colour": "red",
  };
  assert.deepEqual(
    policyOf(DEFAULT_POLICY, properties, (reason) => reasons.push(reason)),
    DEFAULT_POLICY,
  );
  assert.deepEqual(reasons, [
    "lance-gateway.upkeep must be on or off",
    "lance-gateway.upkeep.fragments must be an integer from 2 to 1000000",
    "lance-gateway.upkeep.retention must be an age such as 90m, 12h or 7d",
    "lance-gateway.upkeep.history must be thinned or all",
    "lance-gateway.upkeep.colour is unknown",
  ]);
  for (const [name, value] of Object.entries(properties))
    assert.throws(() => checkUpkeepProperties({ [name]: value }), failsWith("InvalidInput"));
});
