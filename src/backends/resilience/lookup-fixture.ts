import { type TestContext, vi } from "vitest";

/** Sets the clock of lookups forward, so that the next connection that fails looks the name up again at once. */
export function letLookupsPass({ onTestFinished }: TestContext): void {
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now() + 2_000);
  onTestFinished(() => clock.mockRestore());
}
