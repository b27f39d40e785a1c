/** A metric of the gateway, as in `/metrics` and the docs. */
export interface MetricDeclaration {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  readonly help: string;
  /** How the values of several workers become one. Default: their sum. */
  readonly aggregator?: "first" | "max";
}

/**
 * The metrics of the gateway. The values of labels come from the contract, the error table and the configuration,
 * never from a client.
 */
export const METRICS = {
  buildInfo: {
    name: "lance_gateway_build_info",
    type: "gauge",
    labels: ["version", "node"],
    help: "Always 1; the labels are the version of the gateway and that of Node.",
    aggregator: "first",
  },
  backendInfo: {
    name: "lance_gateway_backend_info",
    type: "gauge",
    labels: ["database", "backend"],
    help: "Always 1; the labels are a database, empty without a name, and the backend that serves it, such as glue.",
    aggregator: "first",
  },
  calls: {
    name: "lance_gateway_calls_total",
    type: "counter",
    labels: ["operation", "protocol", "code", "database"],
    help: "Calls that ended; code is OK or a name of the error table, database is empty without one.",
  },
  refusals: {
    name: "lance_gateway_requests_refused_total",
    type: "counter",
    labels: ["protocol", "code"],
    help: "Requests that never became a call; code is a name of the error table, protocol is http where none could read it.",
  },
  seconds: {
    name: "lance_gateway_call_seconds",
    type: "histogram",
    labels: ["operation", "protocol", "database"],
    help: "How long calls took, to the end of their answers, in seconds.",
  },
  running: {
    name: "lance_gateway_calls_running",
    type: "gauge",
    labels: [],
    help: "Calls that are running.",
  },
  bytes: {
    name: "lance_gateway_arrow_bytes_total",
    type: "counter",
    labels: ["operation", "direction"],
    help: "Bytes of the Arrow bodies of calls that ended, received or sent.",
  },
  connections: {
    name: "lance_gateway_connections",
    type: "gauge",
    labels: [],
    help: "Connections that are open.",
  },
  accepted: {
    name: "lance_gateway_connections_accepted_total",
    type: "counter",
    labels: [],
    help: "Connections that were accepted, those beyond the maximum included.",
  },
  traffic: {
    name: "lance_gateway_network_bytes_total",
    type: "counter",
    labels: ["direction"],
    help: "Bytes of connections, received from clients and sent to them, those of TLS included.",
  },
  limited: {
    name: "lance_gateway_calls_limited_total",
    type: "counter",
    labels: ["limit"],
    help: "Calls that were refused because they met a limit of the gateway.",
  },
  credentials: {
    name: "lance_gateway_credentials_total",
    type: "counter",
    labels: ["way", "outcome"],
    help: "Calls by the credential that proved their caller, accepted, or refused with an empty way; absent without --auth.",
  },
  policyDecisions: {
    name: "lance_gateway_policy_decisions_total",
    type: "counter",
    labels: ["decision"],
    help: "Decisions of policies about single objects: allow or deny.",
  },
  catalogRows: {
    name: "lance_gateway_catalog_rows",
    type: "gauge",
    labels: ["database"],
    help: "Namespaces and tables of the catalog in memory.",
    aggregator: "max",
  },
  catalogBytes: {
    name: "lance_gateway_catalog_bytes",
    type: "gauge",
    labels: ["database"],
    help: "Memory of the texts of the catalog, in every worker.",
  },
  commits: {
    name: "lance_gateway_catalog_commits_total",
    type: "counter",
    labels: ["database"],
    help: "Groups of changes of the catalog that were committed, or failed.",
  },
  changes: {
    name: "lance_gateway_catalog_changes_total",
    type: "counter",
    labels: ["database"],
    help: "Changes in these groups; divided by the commits, it is the mean size of a group.",
  },
  commitRetries: {
    name: "lance_gateway_catalog_commit_retries_total",
    type: "counter",
    labels: ["database"],
    help: "Attempts at a commit that were repeated because another process was faster.",
  },
  freshnessChecks: {
    name: "lance_gateway_catalog_checks_total",
    type: "counter",
    labels: ["database", "kind"],
    help: "Checks whether the catalog in memory is the newest: by a stamp of the disk, or by a look into the storage.",
  },
  openTables: {
    name: "lance_gateway_open_tables",
    type: "gauge",
    labels: ["database"],
    help: "Tables whose handles are open, in every worker.",
  },
  jobs: {
    name: "lance_gateway_jobs",
    type: "gauge",
    labels: ["database", "state"],
    help: "Jobs of this process that wait or run.",
  },
  clusterSubmitted: {
    name: "lance_gateway_cluster_runs_total",
    type: "counter",
    labels: ["database"],
    help: "Runs of drivers that a Ray cluster has taken for jobs.",
  },
  clusterRunning: {
    name: "lance_gateway_cluster_jobs_running",
    type: "gauge",
    labels: ["database"],
    help: "Jobs whose work on a cluster this process follows.",
  },
  clusterEnded: {
    name: "lance_gateway_cluster_jobs_total",
    type: "counter",
    labels: ["database", "outcome"],
    help: "Work of jobs on a cluster that succeeded, failed or was cancelled, or that was left to another process.",
  },
  clusterSeconds: {
    name: "lance_gateway_cluster_seconds",
    type: "histogram",
    labels: ["database"],
    help: "How long the work of jobs on a cluster took with all its runs, in seconds.",
  },
  decisions: {
    name: "lance_gateway_upstream_decisions_total",
    type: "counter",
    labels: ["database", "decision"],
    help: "Decisions about upstreams.",
  },
  cacheBlocks: {
    name: "lance_gateway_cache_blocks_total",
    type: "counter",
    labels: ["source"],
    help: "Blocks that reads of --cache-dir found in memory or on the disk, fetched from the bucket, or shared with another read that fetched them.",
    aggregator: "max",
  },
  cacheBytes: {
    name: "lance_gateway_cache_bytes_total",
    type: "counter",
    labels: ["kind"],
    help: "Bytes of reads that were answered from the cache alone (hit), of blocks that came from the bucket (fetched), and of blocks that went to the disk (written).",
    aggregator: "max",
  },
  cacheEvictions: {
    name: "lance_gateway_cache_evictions_total",
    type: "counter",
    labels: ["place"],
    help: "Blocks that left the memory or the disk of the cache for lack of room.",
    aggregator: "max",
  },
  cacheErrors: {
    name: "lance_gateway_cache_errors_total",
    type: "counter",
    labels: ["kind"],
    help: "Blocks that failed their checksum (damaged), failures of the cache's disk, failed fetches from the bucket, and blocks that were not written because the disk was slower than the bucket (skipped).",
    aggregator: "max",
  },
  cacheForwarded: {
    name: "lance_gateway_cache_requests_forwarded_total",
    type: "counter",
    labels: [],
    help: "Requests of the engine that the cache passed on to the bucket.",
    aggregator: "max",
  },
  cacheStored: {
    name: "lance_gateway_cache_stored_bytes",
    type: "gauge",
    labels: ["place"],
    help: "Bytes of the blocks in the memory and on the disk of the cache.",
    aggregator: "max",
  },
  cacheSeconds: {
    name: "lance_gateway_cache_read_seconds",
    type: "histogram",
    labels: ["answer"],
    help: "How long the engine's reads through the cache took, in seconds: a hit needs nothing of the bucket.",
    aggregator: "max",
  },
  upkeepRuns: {
    name: "lance_gateway_upkeep_runs_total",
    type: "counter",
    labels: ["database", "outcome"],
    help: "Work on tables in the background, and attempts at it.",
  },
  upkeepSeconds: {
    name: "lance_gateway_upkeep_seconds",
    type: "histogram",
    labels: ["database"],
    help: "How long the work on a table took, in seconds.",
  },
  upkeepFragments: {
    name: "lance_gateway_upkeep_fragments_joined_total",
    type: "counter",
    labels: ["database"],
    help: "Fragments that were joined with others, or rewritten without their deleted rows.",
  },
  upkeepVersions: {
    name: "lance_gateway_upkeep_versions_pruned_total",
    type: "counter",
    labels: ["database"],
    help: "Versions of tables that were pruned.",
  },
  upkeepBytes: {
    name: "lance_gateway_upkeep_bytes_pruned_total",
    type: "counter",
    labels: ["database"],
    help: "Size of the pruned versions and of the files that only they needed, as far as the versions record it.",
  },
  upkeepWaiting: {
    name: "lance_gateway_upkeep_tables_waiting",
    type: "gauge",
    labels: ["database"],
    help: "Tables that wait to be looked at after writes, or are worked on.",
  },
  auditLost: {
    name: "lance_gateway_audit_lines_lost_total",
    type: "counter",
    labels: [],
    help: "Lines that the audit log lacks because they could not be written.",
  },
  accessLost: {
    name: "lance_gateway_access_lines_lost_total",
    type: "counter",
    labels: [],
    help: "Lines that the access log lacks because they could not be written.",
  },
  eventAttempts: {
    name: "lance_gateway_webhook_attempts_total",
    type: "counter",
    labels: ["webhook", "outcome"],
    help: "Attempts to deliver an event; outcome is delivered or failed, webhook is the address without its query.",
  },
  eventsWaiting: {
    name: "lance_gateway_webhook_events_waiting",
    type: "gauge",
    labels: ["webhook"],
    help: "Events that wait for their delivery.",
  },
  deadLetters: {
    name: "lance_gateway_webhook_dead_letters_total",
    type: "counter",
    labels: ["webhook"],
    help: "Events that were not delivered and went to the file of dead letters.",
  },
  eventsLost: {
    name: "lance_gateway_webhook_events_lost_total",
    type: "counter",
    labels: ["webhook"],
    help: "Events that were not delivered and could not be written to the file of dead letters either.",
  },
  sharedRateFailures: {
    name: "lance_gateway_shared_rate_failures_total",
    type: "counter",
    labels: [],
    help: "Requests to the server of --rate-limit-redis that failed; rates then count in each process for a second.",
  },
  workers: {
    name: "lance_gateway_workers",
    type: "gauge",
    labels: [],
    help: "Workers that serve; absent without --workers.",
  },
  replacements: {
    name: "lance_gateway_workers_replaced_total",
    type: "counter",
    labels: ["reason"],
    help: "Workers that were replaced because they ended, or because their event loop was blocked; absent without --workers.",
  },
} as const satisfies Record<string, MetricDeclaration>;
