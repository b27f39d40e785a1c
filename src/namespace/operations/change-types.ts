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
