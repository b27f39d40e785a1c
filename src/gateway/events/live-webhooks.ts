import type { Configuration } from "../../config/configuration.ts";
import type { PreparedChange } from "../reload/prepared-change.ts";
import { openWebhooks } from "./open-webhooks.ts";
import type { WebhookSurroundings, Webhooks } from "./start-webhooks.ts";

/** Webhooks of a gateway whose configuration changes; there may be none for a while. */
export interface LiveWebhooks extends Pick<Webhooks, "announce" | "close"> {
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
