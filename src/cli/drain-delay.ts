import { existsSync } from "node:fs";

/** For balancers that ask for readiness every second or two, in milliseconds. */
const IN_CONTAINER_MS = 5_000;

/** Files by which Docker and Podman mark their containers. */
const MARKS = ["/.dockerenv", "/run/.containerenv"];

/**
 * The drain delay when nobody has chosen one: some seconds in a container, where something else decides who gets new
 * connections and needs time to see the readiness. At a terminal a person waits for the end.
 */
export function defaultDrainDelayMs(environment: Readonly<Record<string, string | undefined>>): number {
  if (process.stdout.isTTY || process.stderr.isTTY) return 0;
  const inContainer = environment["KUBERNETES_SERVICE_HOST"] !== undefined || MARKS.some(existsSync);
  return inContainer ? IN_CONTAINER_MS : 0;
}
