import { mkdir } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import type { Logger } from "pino";
import { UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import { type AddressGuard, createAddressGuard } from "../../events/addresses.ts";
import { openDeadLetters } from "../../events/dead-letters.ts";
import type { RetryPolicy } from "../../events/delivery-queue.ts";
import { CONCURRENCY, createDispatcher, type Dispatcher, type EventTally } from "../../events/dispatcher.ts";
import { createGuardedAgent } from "../../events/guarded-agent.ts";
import { openJournal } from "../../events/journal.ts";
import type { Webhook } from "../../events/webhook.ts";
import { listenOn } from "../../server/port/listen.ts";
import type { PreparedChange } from "../reload/prepared-change.ts";
import { openReceivers } from "./open-receivers.ts";

/** Options about webhooks. */
export type WebhookOptions = Pick<
  ServeOptions,
  | "webhooks"
  | "webhookSecretFile"
  | "webhookDir"
  | "webhookRetryMs"
  | "webhookTimeoutMs"
  | "webhookMaxWaitingBytes"
  | "webhookAllowedAddresses"
>;

/** Facts about the gateway that webhooks need. */
export interface WebhookSurroundings {
  readonly log: Logger;
  readonly tally: EventTally;
  /** Names of the databases. Default: there is a single one without a name. */
  readonly databases?: ReadonlySet<string> | undefined;
}

/** Deliveries to the receivers of a directory. */
export interface Webhooks extends Pick<Dispatcher, "announce" | "close"> {
  /**
   * Opens other receivers in place of the present ones.
   *
   * @throws UsageError as {@link startWebhooks} does.
   */
  prepare(options: WebhookOptions, databases: ReadonlySet<string> | undefined): Promise<PreparedChange>;
}

/** Pauses between attempts, in milliseconds. */
const PAUSES: Omit<RetryPolicy, "totalMs"> = { firstPauseMs: 1_000, maxPauseMs: 300_000 };

/**
 * Opens the webhooks that the options describe, of which there is at least one, and delivers what an earlier run has left.
 *
 * @throws UsageError for options that are missing or wrong, and for files that cannot be used.
 */
export async function startWebhooks(
  options: WebhookOptions,
  { log, tally, databases }: WebhookSurroundings,
): Promise<Webhooks> {
  const { webhookDir: directory } = options;
  if (directory === undefined) throw new UsageError("--webhook-url requires --webhook-dir");
  const guard = createAddressGuard(options.webhookAllowedAddresses);
  let receivers = await openReceivers(options, { guard, log, databases });
  try {
    const { webhooks } = receivers;
    const dispatcher = await openDispatcher(options, { directory, webhooks, guard, log, tally });
    return {
      announce: dispatcher.announce,
      async prepare(changed, names) {
        const next = await openReceivers(changed, { guard, log, databases: names });
        return {
          commit() {
            dispatcher.replace(next.webhooks);
            receivers.close();
            receivers = next;
          },
          abort: async () => next.close(),
        };
      },
      async close() {
        await dispatcher.close();
        receivers.close();
      },
    };
  } catch (error) {
    receivers.close();
    throw error;
  }
}

interface Parts {
  readonly directory: string;
  readonly webhooks: readonly Webhook[];
  readonly guard: AddressGuard;
  readonly log: Logger;
  readonly tally: EventTally;
}

async function openDispatcher(
  { webhookRetryMs, webhookTimeoutMs: timeoutMs, webhookMaxWaitingBytes: maxWaitingBytes }: WebhookOptions,
  { directory, webhooks, guard, log, tally }: Parts,
): Promise<Dispatcher> {
  const fail = (cause: Error) => {
    throw new UsageError(`--webhook-dir: ${cause.message}`, { cause });
  };
  await mkdir(directory, { recursive: true, mode: 0o700 }).catch(fail);
  const unlock = await lock(directory).catch((cause: Error) =>
    fail(new Error(`${directory} is for a single gateway: ${cause.message}`, { cause })),
  );
  try {
    const journal = await openJournal(join(directory, "waiting.jsonl"), log).catch(fail);
    const deadLetters = await openDeadLetters(join(directory, "dead-letters.jsonl"), log).catch(fail);
    const agent = createGuardedAgent({ guard, connections: CONCURRENCY, timeoutMs });
    const retry = { ...PAUSES, totalMs: webhookRetryMs };
    const parts = { webhooks, journal, deadLetters, agent, retry, timeoutMs, maxWaitingBytes, tally, log };
    const dispatcher = createDispatcher(parts);
    return {
      ...dispatcher,
      async close() {
        await dispatcher.close();
        await unlock();
      },
    };
  } catch (error) {
    await unlock();
    throw error;
  }
}

/** Keeps other processes off a directory until the process ends, by a socket that it listens on. */
async function lock(directory: string): Promise<() => Promise<void>> {
  const server = createServer((socket) => socket.destroy());
  await listenOn(server, { path: join(directory, "lock.sock"), mode: 0o600 });
  server.unref();
  return () => new Promise((resolve) => server.close(() => resolve()));
}
