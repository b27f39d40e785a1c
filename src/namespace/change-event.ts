/** Begins the types of events. */
export const EVENT_PREFIX = "lance.gateway.";

/** A change of the catalog as an event of CloudEvents 1.0, in the JSON format. */
export interface ChangeEvent {
  readonly specversion: "1.0";
  /** Unique among all events. */
  readonly id: string;
  /** Name of the gateway, as the operator has chosen it. */
  readonly source: string;
  readonly type: `${typeof EVENT_PREFIX}${ChangeType}`;
  /** Object that changes, its names joined by `$`. */
  readonly subject: string;
  /** When the operation had ended, in UTC. */
  readonly time: string;
  readonly datacontenttype: "application/json";
  readonly data: ChangeData;
}

/** Facts of a change; properties without a value are absent. */
export interface ChangeData {
  /** Database of the object. Default: the gateway has a single one. */
  readonly database?: string | undefined;
  /** Object that changes, its names joined by `$`. */
  readonly object: string;
  /** New name of a renamed table, its names joined by `$`. */
  readonly to?: string | undefined;
  /** Name of the operation in the contract. */
  readonly operation: string;
  /** Whether the operation has succeeded, or failed in a way that leaves open what it has changed. */
  readonly outcome: "done" | "unknown";
  /** Version of the table after the change, if the operation states it. */
  readonly version?: number | undefined;
  /** Job that makes the change, or the rest of it, after the event. */
  readonly job?: string | undefined;
  /** Choice of the request about objects that exist already, or do not exist, such as `exist_ok`. */
  readonly mode?: string | undefined;
  /** Choice of the request about the contents of a dropped namespace, such as `cascade`. */
  readonly behavior?: string | undefined;
  /** Id of the request, as in the access log, the audit log and errors. */
  readonly request: string;
}

/** Takes events on their way to others. */
export interface EventSink {
  /** Begins the delivery of events; resolves when they are as safe as they get. It never rejects. */
  announce(events: readonly ChangeEvent[]): Promise<void>;
}

/** Kinds of changes, by the object that changes. */
export const CHANGE_TYPES = [
  "namespace.created",
  "namespace.dropped",
  "table.created",
  "table.declared",
  "table.registered",
  "table.deregistered",
  "table.dropped",
  "table.renamed",
  "table.data_changed",
  "table.schema_changed",
  "table.indices_changed",
  "table.versions_deleted",
  "table.tags_changed",
  "table.branches_changed",
  "table.settings_changed",
  "table.transaction_changed",
] as const;

/** Kind of a change, such as `table.created`. */
export type ChangeType = (typeof CHANGE_TYPES)[number];
