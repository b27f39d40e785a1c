import type { Logger } from "pino";
import type { Databases } from "../config/configuration.ts";
import type { ServeOptions } from "../config/options.ts";
import type { Dispatcher } from "../events/dispatcher.ts";
import { createEventTallies } from "../metrics/event-tallies.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Announcements } from "../pipeline/announce-changes.ts";
import { openWebhooks } from "./open-webhooks.ts";
import type { WebhookOptions } from "./start-webhooks.ts";
import type { Workers } from "./workers.ts";

/** Options about events: who gets them, and what they say of their origin. */
export type EventOptions = WebhookOptions & Pick<ServeOptions, "webhookSource">;

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
  readonly metrics?: Metrics | undefined;
  /** Default: there is a single one without a name. */
  readonly databases?: Databases | undefined;
  /** Default: there is a single one. */
  readonly workers?: Workers | undefined;
}

/**
 * Opens the way of events. A worker hands them to the main thread.
 *
 * @throws UsageError
 */
export async function openAnnouncements(
  options: EventOptions,
  { log, metrics, databases, workers }: Surroundings,
): Promise<OpenAnnouncements> {
  if (workers !== undefined) return { announcements: announcementsOf(options, workers.events) };
  const tally = metrics?.events ?? createEventTallies();
  const names = databases && new Set(databases.byName.keys());
  const dispatcher = await openWebhooks(options, { log, tally, databases: names });
  return { dispatcher, announcements: dispatcher && announcementsOf(options, dispatcher) };
}

function announcementsOf(
  { webhooks, webhookSource: source }: EventOptions,
  sink: Announcements["sink"],
): Announcements | undefined {
  return webhooks.length === 0 ? undefined : { sink, source };
}
