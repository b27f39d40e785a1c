const FUNCTIONS =
  "Functions are Python, which the gateway does not run. With `--functions on`, a Ray cluster does: see [functions](how-to/functions.md).";
const SECRETS =
  "Secrets belong to functions, which the gateway does not run. With `--functions on`, a Ray cluster does: see [functions](how-to/functions.md).";
const SQL =
  "SQL goes to the port after the host's; with `sql_host_override`, the gateway serves it: see [Flight SQL](flight.md#flight-sql).";
const LOG =
  "The engine's Node API cannot install a log of a table; see [ADR 4](adr/0004-below-the-engines-wrapper.md).";
const MANIFEST_PATHS = "The gateway's tables have the second naming scheme of manifests.";
const RECORD = "The library's own work has no record; a job of the gateway has one.";
const PAUSES = "Impossible: the engine's work has no step at which it could pause; a job can be cancelled.";
const SOURCE_ROW =
  "The library's views have a further column, `__source_row_id`; see [ADR 14](adr/0014-jobs-in-the-catalogs-storage.md). In Node it makes views on a directory only.";
const NODE_VIEWS = "The client in Node makes views on a directory only.";

/** Why a method is not served, by `object.method`. A method that every client has served needs none. */
export const REASONS: Readonly<Record<string, string>> = {
  "connection.alter_secret": SECRETS,
  "connection.create_function": FUNCTIONS,
  "connection.create_function_async": FUNCTIONS,
  "connection.create_materialized_view": SOURCE_ROW,
  "connection.create_materialized_view_async": SOURCE_ROW,
  "connection.create_secret": SECRETS,
  "connection.describe_query": SQL,
  "connection.describe_secret": SECRETS,
  "connection.drop_all_tables": "Drop the tables one by one, or a namespace with `cascade`.",
  "connection.drop_database": "Drop the tables one by one.",
  "connection.drop_function": FUNCTIONS,
  "connection.drop_function_async": FUNCTIONS,
  "connection.drop_secret": SECRETS,
  "connection.execute_query": SQL,
  "connection.execute_query_async": SQL,
  "connection.get_function": FUNCTIONS,
  "connection.get_read_consistency_interval":
    "A read through the gateway sees every write that ended before it.",
  "connection.list_functions": FUNCTIONS,
  "connection.list_materialized_views": NODE_VIEWS,
  "connection.list_secrets": SECRETS,
  "connection.namespace_client": "A client of the REST API instead of a directory.",
  "connection.namespace_exists": "Only connections to a namespace have it, in the library too.",
  "connection.open_materialized_view": NODE_VIEWS,
  "connection.pause_job": PAUSES,
  "connection.resume_job": PAUSES,
  "connection.serialize": "The text describes the connection.",
  "connection.table_exists": "Only connections to a namespace have it, in the library too.",
  "connection.uri": "`db://…`; the synchronous client fails by itself.",
  "table.checkpoint_lsm": LOG,
  "table.compact_lsm": LOG,
  "table.fetch_blob_ranges": "The client offers it on local tables only; `fetch_blob_files` reads ranges.",
  "table.flush_lsm": LOG,
  "table.function_errors": FUNCTIONS,
  "table.migrate_manifest_paths_v2": MANIFEST_PATHS,
  "table.migrate_v2_manifest_paths": MANIFEST_PATHS,
  "table.optimize":
    "The server looks after its tables, and no client sends a request: the synchronous one only warns. `lance-gateway optimize` does it at once.",
  "table.refresh_column": "Use `refresh_column_async` and wait for its job.",
  "table.refresh_materialized_view": NODE_VIEWS,
  "table.set_lsm_write_spec": LOG,
  "table.set_unenforced_primary_key":
    "Set it in the schema of a new table: the metadata `lance-schema:unenforced-primary-key:position` of the field.",
  "table.to_arrow": "The synchronous client has none for remote tables; use `search().to_arrow()`.",
  "table.to_lance": "The synchronous client has none for remote tables.",
  "table.to_pandas": "The synchronous client has none for remote tables; use `search().to_pandas()`.",
  "table.to_polars": "The synchronous client has none for remote tables; use `search().to_polars()`.",
  "table.uri": "The location of the table on the server.",
  "table.uses_v2_manifest_paths": MANIFEST_PATHS,
  "materialized view.definition": NODE_VIEWS,
  "materialized view.name": NODE_VIEWS,
  "materialized view.refresh": SOURCE_ROW,
  "materialized view.refresh_async": SOURCE_ROW,
  "materialized view.table": SOURCE_ROW,
  "job.creation_ms": RECORD,
  "job.id": RECORD,
  "job.job_type": RECORD,
  "job.result": RECORD,
  "job.spec": RECORD,
};
