// The cost of security, on one catalog: calls of metadata and a long listing through gateways with more and more of it, in
// turn; decisions by 1,000 policies; and the times of a caller while another floods.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compareSides, LISTING, METADATA } from "./secured/calls.ts";
import { measureDecisions } from "./secured/decisions.ts";
import { compareFlood } from "./secured/flood.ts";
import { makeWorld } from "./secured/gateways.ts";

/** Runs the comparisons; takes the names of some of them, or none for all: `decisions`, `calls`, `listing`, `flood`. */
export async function run(chosen: readonly string[]): Promise<void> {
  const wants = (name: string) => chosen.length === 0 || chosen.includes(name);
  if (wants("decisions")) await measureDecisions();
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  try {
    await using world = await makeWorld(folder);
    const { keys, policies, rates, audit } = world.options;
    const open = await world.start("open", []);
    const secured = await world.start("keys, 1,000 policies, three rate limits, required audit log", [
      ...[...keys, ...policies, ...rates, ...audit],
    ]);
    if (wants("calls")) for (const work of METADATA) await compareSides(work, [open, secured]);
    if (wants("listing")) {
      const filtered = await world.start("keys, 1,000 policies", [...keys, ...policies]);
      await compareSides(LISTING, [open, filtered]);
    }
    if (wants("flood")) {
      const { server } = await world.start("flood", [...keys, ...policies, "--rate-limit", "principal=500"]);
      await compareFlood(server.port, world.callers.quiet, world.callers.flooder);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
