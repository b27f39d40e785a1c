import { MessageChannel, type MessagePort } from "node:worker_threads";
import type { TestContext } from "vitest";
import { LanceError } from "../../../../namespace/errors.ts";
import { silent } from "../../test-support.ts";
import { type Catalog, createCatalog } from "../catalog.ts";
import { openBaseDirectory, table } from "../catalog-fixture.ts";
import type { ManifestTable } from "../manifest/manifest-table.ts";

type Change = (manifest: ManifestTable) => Partial<ManifestTable>;

/** Opens the catalogs of workers on one directory: the first commits for the others. */
export async function openWorkers(t: TestContext, count: number, changeFirst: Change = () => ({})) {
  const { manifestTable, open } = await openBaseDirectory(t);
  const newChannels = () => {
    const opened = Array.from({ length: count - 1 }, () => new MessageChannel());
    for (const { port1 } of opened) {
      port1.on("close", () => closedPorts++);
      t.onTestFinished(() => port1.close());
    }
    return opened;
  };
  let channels = newChannels();
  const connects: (((port: MessagePort) => void) | undefined)[] = [];
  let closedPorts = 0;
  const reads: number[] = [];
  let versions = 0;

  function openOne(worker: number): Catalog {
    const plain = manifestTable();
    const change: Partial<ManifestTable> = {
      async changes(from, to) {
        const delta = await plain.changes(from, to);
        if (delta !== undefined) reads.push(worker);
        return delta;
      },
      async read(...args) {
        reads.push(worker);
        return plain.read(...args);
      },
      async prepare(...args) {
        const prepared = await plain.prepare(...args);
        return (
          prepared && {
            ...prepared,
            async publish(options) {
              const committed = await prepared.publish(options);
              if (committed !== undefined) versions++;
              return committed;
            },
          }
        );
      },
    };
    const commitPorts = (listener: (port: MessagePort) => void) => {
      connects[worker] = listener;
      const ports = worker === 0 ? channels.map(({ port1 }) => port1) : [channels[worker - 1]?.port2];
      for (const port of ports) if (port !== undefined) listener(port);
      return () => {
        connects[worker] = undefined;
      };
    };
    const manifest = { ...plain, ...change };
    const workers = { isFirst: worker === 0, commitPorts };
    const changed = { ...manifest, ...(worker === 0 && changeFirst(manifest)) };
    return createCatalog(changed, silent, { maintenance: false, workers });
  }
  const catalogs = Array.from({ length: count }, (_, worker) => openOne(worker));
  await declare(catalogs[0] as Catalog, "first");
  for (const catalog of catalogs) await catalog.read();
  versions = 0;
  reads.length = 0;
  return {
    catalogs: catalogs as [Catalog, Catalog, Catalog],
    /** Opens a catalog like another process. */
    other: () => open(),
    /** Ends the committing worker for the others. */
    disconnect() {
      for (const { port1 } of channels) port1.close();
    },
    /** Starts a new committing worker. */
    replaceFirst(): Catalog {
      channels = newChannels();
      const first = openOne(0);
      for (const [index, { port2 }] of channels.entries()) connects[index + 1]?.(port2);
      return first;
    },
    /** Workers that have read rows from the storage. */
    reads,
    versions: () => versions,
    /** Number of catalogs that wait for ports. */
    connecting: () => connects.filter((connect) => connect !== undefined).length,
    /** Number of ports of the committing worker that are closed. */
    closedPorts: () => closedPorts,
  };
}

/** Adds a table, unless it exists. */
export const declare = (catalog: Catalog, id: string): Promise<void> =>
  catalog.mutate((draft) => {
    if (draft.get(id) !== undefined) throw new LanceError("TableAlreadyExists", id);
    draft.put(table(id));
  });
