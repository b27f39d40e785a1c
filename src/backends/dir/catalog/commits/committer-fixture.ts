// A thread that commits versions of a dataset as fast as it can, and reports each finished one in memory that it shares
// with the reader.
import { workerData } from "node:worker_threads";
import { manifestKey } from "../../format/dataset.ts";
import { createLocalStore } from "../../format/local/local-store.ts";

const { root, done, commits } = workerData as { root: string; done: Int32Array; commits: number };
const dataset = { store: createLocalStore(), root };

for (let version = 1; version <= commits; ) {
  const mine = await dataset.store.putIfAbsent(manifestKey(dataset, BigInt(version), "V2"), Buffer.of(1));
  if (mine) Atomics.store(done, 0, Math.max(version, Atomics.load(done, 0)));
  version = mine || version > Atomics.load(done, 0) ? version + 1 : Atomics.load(done, 0) + 1;
}
