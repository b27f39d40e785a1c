import { describe, test } from "node:test";
import { refused } from "../support/expect.ts";
import { ALL_OPERATIONS, callBare } from "../support/operations.ts";
import type { World } from "./world.ts";

/** Operations that a backend does not have. */
export function unsupportedTests(world: World): void {
  describe("operations that are missing", () => {
    for (const operation of ALL_OPERATIONS) {
      if (world.capabilities.operations.has(operation)) continue;
      test(`${operation} answers Unsupported`, async () => {
        await refused("Unsupported", callBare(world.client, operation, ["ns", "t"]));
      });
    }
  });
}
