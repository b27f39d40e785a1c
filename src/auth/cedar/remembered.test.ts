import assert from "node:assert/strict";
import { beforeAll, test } from "vitest";
import type { Access } from "../../namespace/authorizer.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { atOnce } from "../../runtime/pace.ts";
import { createDecider, type Decider } from "./decide.ts";
import { parsePolicies } from "./read-policies.ts";
import { type Cedar, loadCedar } from "./schema.ts";

let cedar: Cedar;
beforeAll(async () => {
  cedar = await loadCedar();
});

const ann: Principal = { by: "oidc", name: "ann", credentialId: "1", role: "none", groups: [], claims: {} };
const describing: Access = {
  operation: "DescribeTable",
  action: "read",
  object: { kind: "Table", database: undefined, id: ["n1", "t"] },
};

/** Creates a decider that allows everything, and counts the decisions that it makes. */
function countingDecider(text: string): { readonly decider: Decider; made: number } {
  const { policies } = atOnce(parsePolicies(cedar, text, "test.cedar"));
  const counted: Cedar = {
    ...cedar,
    statefulIsAuthorized() {
      counting.made += 1;
      return {
        type: "success",
        response: { decision: "allow", diagnostics: { reason: [], errors: [] } },
        warnings: [],
      };
    },
  };
  const counting = { decider: createDecider(counted, policies), made: 0 };
  return counting;
}

test("the policies that cover callers are remembered within 64 MiB, of which 1,000 policies take 100 kB for each caller", () => {
  const names = Array.from({ length: 1_000 }, (_, at) => `n${at}`);
  const counting = countingDecider(
    names.map((name) => `permit (principal, action, resource in Namespace::"${name}");`).join("\n"),
  );
  const ask = (name: string) => void counting.decider.allows({ ...ann, name }, describing);
  ask("first");
  for (let at = 0; at < 600; at++) ask(`u${at}`);
  ask("first");
  assert.equal(counting.made, 601);
  for (let at = 600; at < 700; at++) ask(`u${at}`);
  ask("first");
  assert.equal(counting.made, 702);
});

test("decisions about objects with long properties are remembered within 64 MiB", async () => {
  const counting = countingDecider('permit (principal, action, resource) when { resource.hasTag("note") };');
  const ask = (note: string) =>
    counting.decider.allows(ann, { ...describing, properties: async () => ({ note }) });
  await ask("first");
  await ask("first");
  assert.equal(counting.made, 1);
  for (let at = 0; at < 40_000; at++) await ask(`${at}`.padEnd(950));
  await ask("first");
  assert.equal(counting.made, 40_002);
});
