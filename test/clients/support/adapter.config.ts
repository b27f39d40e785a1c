import { join } from "node:path";
import { defineConfig } from "vitest/config";

/** The contract on the Rust adapter, whose known deviations `rest-adapter.test.ts` tells from new ones. */
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: [join(import.meta.dirname, "adapter-contract.ts")],
    reporters: ["json"],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
