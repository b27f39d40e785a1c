import type { Logger } from "pino";
import type { Databases } from "../config/configuration.ts";
import type { ServeOptions } from "../config/options.ts";
import type { Dispatcher } from "../events/dispatcher.ts";
import { createEventTallies } from "../metrics/event-tallies.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Announcements } from "../pipeline/announce-changes.ts";
import { openWebhooks } from "./open-webhooks.ts";
import type { Workers } from "./workers.ts";

/** The way of events from calls to receivers. */
export interface OpenAnnouncements {
  /** Where the changes that calls make are announced. Default: nowhere. */
  readonly announcements?: Announcements | undefined;
  /** Delivers events; closing the gateway closes it. Default: another thread does, or there are none. */
  readonly dispatcher?: Dispatcher | undefined;
}

/** Facts about the gateway that the way of events depends on. */
interface Surroundings {
  readonly log: Logger;
  readonly metrics: Metrics | undefined;
  readonly databases: Databases | undefined;
  readonly workers: Workers | undefined;
}

/**
 * Opens the way of events. A worker hands them to the main thread.
 *
 * @throws UsageError
 */
export async function openAnnouncements(
  options: ServeOptions,
  { log, metrics, databases, workers }: Surroundings,
): Promise<OpenAnnouncements> {
  if (workers !== undefined) return { announcements: announcementsOf(options, workers.events) };
  const tally = metrics?.events ?? createEventTallies();
  const names = databases && new Set(databases.byName.keys());
  const dispatcher = await openWebhooks(options, { log, tally, databases: names });
  return { dispatcher, announcements: dispatcher && announcementsOf(options, dispatcher) };
}

function announcementsOf(
  { webhooks, webhookSource: source }: ServeOptions,
  sink: Announcements["sink"],
): Announcements | undefined {
  return webhooks.length === 0 ? undefined : { sink, source };
}
