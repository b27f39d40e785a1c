import assert from "node:assert/strict";
import { test, vi } from "vitest";
import { type FollowedHosts, followHosts, type HostAddress } from "./followed-hosts.ts";

/** Hosts whose lookups end when the test says so. */
function follow() {
  const lookups: PromiseWithResolvers<readonly HostAddress[]>[] = [];
  const opened: string[] = [];
  const hosts: FollowedHosts<string> = followHosts<string>({
    places: [{ address: "catalog:80", name: "catalog:80", host: "catalog" }],
    open(_, addresses = []) {
      const name = addresses.map(({ address }) => address).join(" ");
      opened.push(name);
      return name;
    },
    drain: async () => {},
    close: async () => {},
    resolveHost() {
      const lookup = Promise.withResolvers<readonly HostAddress[]>();
      lookups.push(lookup);
      return lookup.promise;
    },
  });
  return { hosts, lookups, opened };
}

const addresses = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ address: `10.0.${index >> 8}.${index & 255}`, family: 4 }));

test("a resolver that hangs is asked by one lookup at a time", async (t) => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"], now: 1 });
  t.onTestFinished(() => void vi.useRealTimers());
  const { hosts, lookups, opened } = follow();
  for (let round = 0; round < 5; round += 1) {
    vi.advanceTimersByTime(30_000);
    hosts.onUnreached();
  }
  assert.equal(lookups.length, 1);
  lookups[0]?.resolve(addresses(2));
  while (hosts.endpoints.length !== 2) await new Promise(setImmediate);
  vi.advanceTimersByTime(30_000);
  lookups[1]?.resolve(addresses(2));
  await new Promise(setImmediate);
  assert.equal(lookups.length, 2);
  assert.deepEqual(opened, ["", "10.0.0.0", "10.0.0.1"]);
  await hosts.close();
});

test("a name with very many addresses has a bounded number of servers", async () => {
  const { hosts, lookups } = follow();
  lookups[0]?.resolve(addresses(5_000));
  while (hosts.endpoints.length === 1) await new Promise(setImmediate);
  assert.equal(hosts.endpoints.length, 64);
  await hosts.close();
});
