import { setTimeout as sleep } from "node:timers/promises";
import type { LanceClient } from "../../test/support/client.ts";
import { PROTOCOLS } from "../../test/support/protocols.ts";
import { createRandom } from "../../test/support/random.ts";
import { drawKind, type Kind, namespaceOf, WrongAnswer } from "./calls.ts";
import { createLedger, type Ledger, type TableSize } from "./ledger.ts";
import { streamOf, TABLE } from "./rows.ts";

/** A call that has ended. */
export interface Call {
  readonly kind: Kind;
  readonly protocol: string;
  readonly ms: number;
  readonly outcome: "right" | "wrong" | "failed";
  /** The wrong answer, or the failure; absent for a right one. */
  readonly reason?: string;
}

/** The clients of a soak. */
export interface ClientOptions {
  readonly port: number;
  readonly protocols: readonly string[];
  /** Mean pause of a client between two calls, in milliseconds. */
  readonly pauseMs: number;
  readonly onCall: (call: Call) => void;
  /** Number of this time that the clients of the ledgers work; each draws other calls. Default: the first one. */
  readonly round?: number;
}

/** Creates the ledgers of all clients, the table with their first rows and an index for each kind of read. */
export async function prepare(client: LanceClient, clients: number, size: TableSize): Promise<Ledger[]> {
  const ledgers = Array.from({ length: clients }, (_, owner) => createLedger(owner, clients, size));
  const rows = ledgers.flatMap((ledger) => [...ledger.rows.values()]);
  await client.createTable({ id: TABLE }, streamOf(rows));
  await client.createTableIndex({ id: TABLE, column: "id", indexType: "BTREE" });
  await client.createTableIndex({ id: TABLE, column: "text", indexType: "FTS" });
  await client.createTableIndex({ id: TABLE, column: "vector", indexType: "IVF_FLAT", distanceType: "l2" });
  for (const ledger of ledgers) await client.createNamespace({ id: namespaceOf(ledger) });
  return ledgers;
}

/** Lets the clients work until the signal; each keeps its connection and never repeats a call. */
export async function work(
  { port, protocols, pauseMs, onCall, round = 0 }: ClientOptions,
  ledgers: readonly Ledger[],
  signal: AbortSignal,
): Promise<void> {
  const newest = { version: 0n };
  const run = async (own: Ledger) => {
    const protocol = protocols[own.owner % protocols.length] as string;
    const { client, close } = openClient(protocol, port);
    const random = createRandom(round * ledgers.length + own.owner + 1);
    while (!signal.aborted) {
      const kind = drawKind(random);
      const started = performance.now();
      const failure = await kind.run({ client, own, random, newest }).then(
        () => undefined,
        (error: Error) => error,
      );
      const ms = performance.now() - started;
      if (failure === undefined) onCall({ kind, protocol, ms, outcome: "right" });
      else {
        const outcome = failure instanceof WrongAnswer ? "wrong" : "failed";
        onCall({ kind, protocol, ms, outcome, reason: failure.message });
      }
      await sleep(random.below(2 * pauseMs + 1));
    }
    close();
  };
  await Promise.all(ledgers.map(run));
}

/** Opens a client of a protocol. */
export function openClient(protocol: string, port: number): { client: LanceClient; close(): void } {
  const open = PROTOCOLS[protocol];
  if (open === undefined) throw new Error(`the protocols are ${Object.keys(PROTOCOLS).join(", ")}`);
  return open(port);
}
