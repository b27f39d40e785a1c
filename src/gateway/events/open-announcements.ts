import type { Logger } from "pino";
import type { ServeOptions } from "../../config/options/groups.ts";
import { createEventTallies } from "../../observability/metrics/event-tallies.ts";
import type { Metrics } from "../../observability/metrics/metrics.ts";
import type { Announcements } from "../../pipeline/records/announce-changes.ts";
import { openWebhooks } from "./open-webhooks.ts";
import type { WebhookOptions, Webhooks } from "./start-webhooks.ts";

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
