import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A query of a panel of the dashboard, with its variables replaced. */
export interface DashboardQuery {
  readonly expr: string;
  readonly legendFormat: string;
}

interface DashboardPanel {
  readonly targets?: readonly DashboardQuery[];
}

/** The queries of the dashboard for all gateways of the job `lance-gateway`. */
export function dashboardQueries(): readonly DashboardQuery[] {
  const file = join(import.meta.dirname, "../../deploy/grafana/lance-gateway.json");
  const { panels } = JSON.parse(readFileSync(file, "utf8")) as { panels: readonly DashboardPanel[] };
  return panels
    .flatMap(({ targets = [] }) => targets)
    .map(({ expr, legendFormat }) => ({ expr: withValues(expr), legendFormat }));
}

function withValues(expr: string): string {
  return expr
    .replaceAll("$job", "lance-gateway")
    .replaceAll("$instance", ".*")
    .replaceAll("$__rate_interval", "1m");
}
