import { CALL_ROWS } from "./call-panels.ts";
import type { Panel } from "./panel.ts";
import { STATE_ROWS } from "./state-panels.ts";

const COLUMNS = 24;
const PANEL = { w: 6, h: 7 } as const;

/** Selectors of the dashboard's variables. */
const SELECT = 'job=~"$job",instance=~"$instance"';
const SOURCE = { type: "prometheus", uid: "$datasource" } as const;

interface Variable {
  readonly name: string;
  readonly label: string;
  readonly query: string;
}

/** Variables whose values Prometheus has. */
const VARIABLES: readonly (Variable & { readonly multi: boolean })[] = [
  { name: "job", label: "Job", query: "label_values(lance_gateway_build_info, job)", multi: false },
  {
    name: "instance",
    label: "Gateway",
    query: 'label_values(lance_gateway_build_info{job="$job"}, instance)',
    multi: true,
  },
];

/** The dashboard of Grafana, as JSON. */
export function dashboardJson(): string {
  const dashboard = {
    uid: "lance-gateway",
    title: "Lance Gateway",
    tags: ["lance"],
    timezone: "browser",
    schemaVersion: 39,
    editable: true,
    graphTooltip: 1,
    refresh: "30s",
    time: { from: "now-1h", to: "now" },
    templating: { list: [datasourceVariable(), ...VARIABLES.map(queryVariable)] },
    panels: layout(),
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}

function layout(): object[] {
  const placed: object[] = [];
  let y = 0;
  for (const { title, panels } of [...CALL_ROWS, ...STATE_ROWS]) {
    const place = { x: 0, y, w: COLUMNS, h: 1 };
    placed.push({ id: placed.length + 1, type: "row", title, collapsed: false, gridPos: place, panels: [] });
    y += 1;
    for (const [index, panel] of panels.entries()) {
      const x = (index * PANEL.w) % COLUMNS;
      if (index > 0 && x === 0) y += PANEL.h;
      placed.push({ id: placed.length + 1, ...timeSeries(panel), gridPos: { ...PANEL, x, y } });
    }
    y += PANEL.h;
  }
  return placed;
}

function timeSeries({ title, unit, description, queries }: Panel): object {
  return {
    type: "timeseries",
    title,
    ...(description !== undefined && { description }),
    datasource: SOURCE,
    fieldConfig: {
      defaults: { unit, min: 0, custom: { fillOpacity: 8, showPoints: "never" } },
      overrides: [],
    },
    options: {
      legend: { displayMode: "list", placement: "bottom", showLegend: true },
      tooltip: { mode: "multi", sort: "desc" },
    },
    targets: queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode("A".charCodeAt(0) + index),
      datasource: SOURCE,
      expr: expr.replaceAll("SELECT", SELECT),
      legendFormat: legend,
    })),
  };
}

function datasourceVariable(): object {
  return { name: "datasource", label: "Data source", type: "datasource", query: "prometheus", current: {} };
}

function queryVariable({ name, label, query, multi }: (typeof VARIABLES)[number]): object {
  return {
    name,
    label,
    type: "query",
    datasource: SOURCE,
    query: { query, refId: name },
    definition: query,
    refresh: 2,
    sort: 1,
    multi,
    includeAll: multi,
    ...(multi && { allValue: ".*" }),
    current: multi ? { text: "All", value: "$__all" } : {},
  };
}
