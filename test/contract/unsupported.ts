import { describe, test } from "vitest";
import { refused } from "../support/expect.ts";
import { ALL_OPERATIONS, callBare } from "../support/operations.ts";
import type { World } from "./world.ts";

/** Operations that a backend does not support. */
export function unsupportedTests(world: World): void {
  const missing = ALL_OPERATIONS.filter((operation) => !world.capabilities.operations.has(operation));
  if (missing.length === 0) return;
  describe("operations that are missing", () => {
    for (const operation of missing) {
      test(`${operation} answers Unsupported`, async () => {
        await refused("Unsupported", callBare(world.client, operation, ["ns", "t"]));
      });
    }
  });
}
