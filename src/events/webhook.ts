import { createHash } from "node:crypto";
import { type ChangeEvent, EVENT_PREFIX } from "../namespace/change-event.ts";
import type { ChangeType } from "../namespace/operations/change-types.ts";

/** A receiver of events, as the operator describes it. */
export interface WebhookSetting {
  readonly url: string;
  /** Types of the events that it gets. Default: all. */
  readonly types?: readonly ChangeType[] | undefined;
  /** Databases whose events it gets. Default: all. */
  readonly databases?: readonly string[] | undefined;
}

/** A receiver of events. */
export interface Webhook {
  /** Identifies it in files, without showing its address. */
  readonly key: string;
  readonly url: string;
  /** Its address without the query, which may be a secret: for logs, metrics and files. */
  readonly shown: string;
  /** Secrets that sign what it gets, at least one. */
  secrets(): readonly Buffer[];
  /** Whether it wants an event. */
  accepts(event: ChangeEvent): boolean;
}

/** Creates a receiver. @param secrets returns the secrets as they are now. */
export function createWebhook(
  { url, types, databases }: WebhookSetting,
  secrets: () => readonly Buffer[],
): Webhook {
  const wanted = types && new Set<string>(types.map((type) => `${EVENT_PREFIX}${type}`));
  return {
    key: createHash("sha256").update(url).digest("hex").slice(0, 16),
    url,
    shown: shownAddress(url),
    secrets,
    accepts({ type, data }) {
      if (wanted?.has(type) === false) return false;
      return databases === undefined || databases.includes(data.database ?? "");
    },
  };
}

function shownAddress(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}
