import type { Logger } from "pino";
import type { Configuration } from "../../config/configuration.ts";
import { UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import { createEventTallies } from "../../observability/metrics/background-tallies.ts";
import type { Metrics } from "../../observability/metrics/metrics.ts";
import type { Announcements } from "../../pipeline/records/announce-changes.ts";
import type { PreparedChange } from "../reload/plan-changes.ts";
import type { WebhookOptions, WebhookSurroundings, Webhooks } from "./start-webhooks.ts";

/**
 * Opens the webhooks that the options describe; undefined, with nothing loaded, without any. The process has them once, whatever
 * its number of workers.
 *
 * @throws UsageError for options that are missing or wrong, and for files that cannot be used.
 */
export async function openWebhooks(
  options: WebhookOptions,
  surroundings: WebhookSurroundings,
): Promise<Webhooks | undefined> {
  if (options.webhooks.length === 0) {
    if (options.webhookSecretFile ?? options.webhookDir)
      throw new UsageError("--webhook-secret-file and --webhook-dir need --webhook-url beside them");
    return undefined;
  }
  const { startWebhooks } = await import("./start-webhooks.ts");
  return startWebhooks(options, surroundings);
}

/** Webhooks of a gateway whose configuration changes; there may be none for a while. */
interface LiveWebhooks extends Pick<Webhooks, "announce" | "close"> {
  /**
   * Opens the webhooks of a changed configuration.
   *
   * @throws UsageError for options that are missing or wrong, and for files that cannot be used.
   */
  prepare(configuration: Configuration): Promise<PreparedChange>;
}

/**
 * Opens the webhooks of a configuration. With the same directory, later receivers take the place of the earlier ones, and what waits stays in
 * order. With another directory, or without webhooks, what waits stays in the directory for the next gateway with it.
 *
 * @throws UsageError for options that are missing or wrong, and for files that cannot be used.
 */
export async function openLiveWebhooks(
  { options, databases }: Configuration,
  surroundings: Omit<WebhookSurroundings, "databases">,
): Promise<LiveWebhooks> {
  let current = await openWebhooks(options, { ...surroundings, databases: namesOf(databases) });
  let directory = options.webhookDir;
  let closing: Promise<unknown> = Promise.resolve();

  return {
    announce: async (events) => current?.announce(events),
    async prepare({ options: wanted, databases: named }) {
      const names = namesOf(named);
      if (current !== undefined && wanted.webhooks.length > 0 && wanted.webhookDir === directory)
        return current.prepare(wanted, names);
      // It may have the directory that is wanted now.
      await closing;
      const next = await openWebhooks(wanted, { ...surroundings, databases: names });
      return {
        commit() {
          closing = Promise.resolve(current?.close());
          current = next;
          directory = wanted.webhookDir;
        },
        abort: async () => next?.close(),
      };
    },
    async close() {
      await Promise.all([closing, current?.close()]);
    },
  };
}

function namesOf(databases: Configuration["databases"]): ReadonlySet<string> | undefined {
  return databases && new Set(databases.byName.keys());
}

/** Options about events: who gets them, and what they say of their origin. */
export type EventOptions = WebhookOptions & Pick<ServeOptions, "webhookSource">;

/** The way of events from calls to receivers. */
export interface OpenAnnouncements {
  /** Where the changes that calls make are announced. Default: nowhere. */
  readonly announcements?: Announcements | undefined;
  /** Delivers events; closing the gateway closes it. Default: another thread does, or there are none. */
  readonly dispatcher?: Pick<Webhooks, "close"> | undefined;
}

/** Facts about the gateway that the way of events depends on. */
interface Surroundings {
  readonly log: Logger;
  readonly metrics?: Metrics | undefined;
}

/**
 * Opens the way of events of a gateway whose options stay as they are.
 *
 * @throws UsageError
 */
export async function openAnnouncements(
  options: EventOptions,
  { log, metrics }: Surroundings,
): Promise<OpenAnnouncements> {
  const dispatcher = await openWebhooks(options, { log, tally: metrics?.events ?? createEventTallies() });
  return { dispatcher, announcements: dispatcher && announcementsTo(dispatcher, options) };
}

/** Returns where changes are announced by the options; undefined without receivers. */
export function announcementsTo(
  sink: Announcements["sink"],
  { webhooks, webhookSource: source }: Pick<EventOptions, "webhooks" | "webhookSource">,
): Announcements | undefined {
  return webhooks.length === 0 ? undefined : { sink, source };
}
