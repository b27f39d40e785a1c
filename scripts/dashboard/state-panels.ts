import { one, perSecond, quantile, type Row } from "./panel.ts";

/** Panels about catalogs, work in the background, upstreams and processes. */
export const STATE_ROWS: readonly Row[] = [
  {
    title: "Catalog",
    panels: [
      {
        title: "Namespaces and tables",
        unit: "short",
        queries: one("max by (database) (lance_gateway_catalog_rows{SELECT})", "{{database}}"),
      },
      {
        title: "Memory of the catalog",
        unit: "bytes",
        queries: one("sum by (instance) (lance_gateway_catalog_bytes{SELECT})", "{{instance}}"),
      },
      {
        title: "Commits, and their retries",
        unit: "ops",
        queries: [
          {
            expr: perSecond("lance_gateway_catalog_commits_total", "database"),
            legend: "{{database}} commits",
          },
          {
            expr: perSecond("lance_gateway_catalog_commit_retries_total", "database"),
            legend: "{{database}} retries",
          },
        ],
      },
      {
        title: "Changes of a commit",
        unit: "short",
        queries: one(
          `${perSecond("lance_gateway_catalog_changes_total", "database")} / ${perSecond("lance_gateway_catalog_commits_total", "database")}`,
          "{{database}}",
        ),
      },
      {
        title: "Freshness checks",
        unit: "ops",
        queries: one(
          perSecond("lance_gateway_catalog_checks_total", "database, kind"),
          "{{database}} {{kind}}",
        ),
      },
      {
        title: "Open tables",
        unit: "short",
        queries: one("sum by (instance) (lance_gateway_open_tables{SELECT})", "{{instance}}"),
      },
    ],
  },
  {
    title: "Work in the background",
    panels: [
      {
        title: "Upkeep of tables",
        unit: "ops",
        queries: one(
          perSecond("lance_gateway_upkeep_runs_total", "database, outcome"),
          "{{database}} {{outcome}}",
        ),
      },
      {
        title: "Duration of upkeep, p95",
        unit: "s",
        queries: one(quantile(0.95, "lance_gateway_upkeep_seconds", "database, le"), "{{database}}"),
      },
      {
        title: "Tables that wait for upkeep",
        unit: "short",
        queries: one("sum by (database) (lance_gateway_upkeep_tables_waiting{SELECT})", "{{database}}"),
      },
      {
        title: "Pruned bytes",
        unit: "Bps",
        queries: one(perSecond("lance_gateway_upkeep_bytes_pruned_total", "database"), "{{database}}"),
      },
      {
        title: "Jobs",
        unit: "short",
        queries: one("sum by (database, state) (lance_gateway_jobs{SELECT})", "{{database}} {{state}}"),
      },
      {
        title: "Events to webhooks",
        unit: "ops",
        queries: one(
          perSecond("lance_gateway_webhook_attempts_total", "webhook, outcome"),
          "{{webhook}} {{outcome}}",
        ),
      },
      {
        title: "Events that wait",
        unit: "short",
        queries: one("sum by (webhook) (lance_gateway_webhook_events_waiting{SELECT})", "{{webhook}}"),
      },
    ],
  },
  {
    title: "Upstreams",
    panels: [
      {
        title: "Decisions about upstreams",
        unit: "ops",
        queries: one(
          perSecond("lance_gateway_upstream_decisions_total", "database, decision"),
          "{{database}} {{decision}}",
        ),
      },
      {
        title: "Answers from the cache",
        unit: "percentunit",
        queries: one(
          `${perSecond("lance_gateway_upstream_decisions_total", "database", ',decision=~"cache_hit|cache_revalidated"')} / ${perSecond("lance_gateway_upstream_decisions_total", "database", ',decision=~"cache_hit|cache_revalidated|cache_miss"')}`,
          "{{database}}",
        ),
      },
    ],
  },
  {
    title: "Processes",
    panels: [
      {
        title: "CPU",
        unit: "short",
        queries: one(perSecond("process_cpu_seconds_total", "instance"), "{{instance}}"),
      },
      {
        title: "Memory",
        unit: "bytes",
        queries: one("process_resident_memory_bytes{SELECT}", "{{instance}}"),
      },
      {
        title: "Event loop delay, p99",
        unit: "s",
        queries: one("nodejs_eventloop_lag_p99_seconds{SELECT}", "{{instance}}"),
      },
      {
        title: "File descriptors",
        unit: "short",
        queries: one("process_open_fds{SELECT}", "{{instance}}"),
      },
      {
        title: "Workers",
        unit: "short",
        queries: [
          { expr: "lance_gateway_workers{SELECT}", legend: "{{instance}}" },
          {
            expr: "sum by (instance, reason) (increase(lance_gateway_workers_replaced_total{SELECT}[$__rate_interval]))",
            legend: "{{instance}} replaced: {{reason}}",
          },
        ],
      },
      {
        title: "Versions",
        unit: "short",
        queries: one(
          "count by (version, node) (lance_gateway_build_info{SELECT})",
          "{{version}}, Node {{node}}",
        ),
      },
      {
        title: "Lost log lines",
        unit: "short",
        queries: [
          {
            expr: "sum by (instance) (increase(lance_gateway_audit_lines_lost_total{SELECT}[$__rate_interval]))",
            legend: "{{instance}} audit log",
          },
          {
            expr: "sum by (instance) (increase(lance_gateway_access_lines_lost_total{SELECT}[$__rate_interval]))",
            legend: "{{instance}} access log",
          },
        ],
      },
    ],
  },
];
