import { mkdir } from "node:fs/promises";
import { createServer, isIP } from "node:net";
import { join } from "node:path";
import type { Logger } from "pino";
import { UsageError } from "../../config/option-spec.ts";
import type { WebhookOption } from "../../config/options/events.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import type { RetryPolicy } from "../../events/delivery-queue.ts";
import {
  CONCURRENCY,
  createDispatcher,
  type Dispatcher,
  type EventTally,
  openDeadLetters,
} from "../../events/dispatcher.ts";
import { type AddressGuard, createAddressGuard, createGuardedAgent } from "../../events/guarded-agent.ts";
import { openJournal } from "../../events/journal.ts";
import { createWebhook, openSecretFile, type SecretFile, type Webhook } from "../../events/send.ts";
import { isLoopbackAddress } from "../../runtime/loopback.ts";
import { listenOn } from "../../server/port/listen.ts";
import type { PreparedChange } from "../reload/plan-changes.ts";

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

/** Receivers of events with the files of their secrets, which are open. */
export interface Receivers {
  readonly webhooks: readonly Webhook[];
  close(): void;
}

/** Facts that receivers depend on. */
export interface ReceiverSurroundings {
  readonly guard: AddressGuard;
  readonly log: Logger;
  /** Names of the databases. Default: there is a single one without a name. */
  readonly databases?: ReadonlySet<string> | undefined;
}

/**
 * Opens the receivers that the options describe.
 *
 * @throws UsageError for options that are missing or wrong, and for files that cannot be used.
 */
export async function openReceivers(
  options: Pick<ServeOptions, "webhooks" | "webhookSecretFile">,
  { guard, log, databases }: ReceiverSurroundings,
): Promise<Receivers> {
  const files = new Map<string, SecretFile>();
  const close = () => {
    for (const file of files.values()) file.close();
  };
  for (const setting of options.webhooks) checkSetting(setting, guard, databases);
  try {
    const webhooks: Webhook[] = [];
    for (const setting of options.webhooks) {
      const path = setting.secretFile ?? options.webhookSecretFile;
      if (path === undefined)
        throw new UsageError("--webhook-url requires --webhook-secret-file, or a secret-file of its own");
      const file = files.get(path) ?? (await openSecrets(path, log));
      files.set(path, file);
      webhooks.push(createWebhook(setting, file.secrets));
    }
    const doubled = webhooks.find(({ key }, index) => webhooks.findIndex((each) => each.key === key) < index);
    if (doubled !== undefined) throw new UsageError(`--webhook-url names ${doubled.shown} twice`);
    warnOfPlainText(webhooks, log);
    return { webhooks, close };
  } catch (error) {
    close();
    throw error;
  }
}

function checkSetting(
  { url, databases: wanted = [] }: WebhookOption,
  guard: AddressGuard,
  databases: ReadonlySet<string> = new Set(),
): void {
  const host = hostOf(url);
  if (isIP(host) !== 0 && !guard.permits(host)) {
    throw new UsageError(`--webhook-url: events go to ${host} only if --webhook-allow-address names it`);
  }
  for (const name of wanted) {
    if (!databases.has(name))
      throw new UsageError(`--webhook-url: there is no database ${JSON.stringify(name)}`);
  }
}

function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[(.*)\]$/, "$1");
}

async function openSecrets(path: string, log: Logger): Promise<SecretFile> {
  return openSecretFile(path, log).catch((error: NodeJS.ErrnoException) => {
    const reason = error.code === undefined ? error.message : `it cannot be read: ${error.code}`;
    throw new UsageError(`--webhook-secret-file ${path}: ${reason}`, { cause: error });
  });
}

function warnOfPlainText(webhooks: readonly Webhook[], log: Logger): void {
  for (const { url, shown } of webhooks) {
    if (url.startsWith("https:") || hostOf(url) === "localhost" || isLoopbackAddress(hostOf(url))) continue;
    log.warn({ webhook: shown }, "events travel in the clear to an address without https");
  }
}
