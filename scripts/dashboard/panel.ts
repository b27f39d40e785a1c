/** A query of a panel, in PromQL; `SELECT` is replaced by the selectors of the dashboard's variables. */
export interface Query {
  readonly expr: string;
  /** Name of a series, with labels as `{{label}}`. */
  readonly legend: string;
}

/** A panel. Units are those of Grafana: `reqps`, `s`, `bytes`, `percentunit`, `short`. */
export interface Panel {
  readonly title: string;
  readonly unit: string;
  readonly description?: string;
  readonly queries: readonly Query[];
}

/** A row of panels. */
export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

/** A rate per second, summed by labels. @param more further matchers, each after a comma */
export const perSecond = (metric: string, by: string, more = "") =>
  `sum by (${by}) (rate(${metric}{SELECT${more}}[$__rate_interval]))`;

/** A quantile of a histogram. @param share of the calls below it, from 0 to 1 */
export const quantile = (share: number, metric: string, by: string) =>
  `histogram_quantile(${share}, sum by (${by}) (rate(${metric}_bucket{SELECT}[$__rate_interval])))`;

/** A panel's only query. */
export const one = (expr: string, legend: string): readonly Query[] => [{ expr, legend }];
