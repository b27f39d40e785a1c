import { escapeHtml } from "./escape-html.ts";

/** A line of a chart. */
export interface Line {
  readonly name: string;
  /** A value for each time; NaN leaves a gap. */
  readonly values: readonly number[];
}

/** A chart over time. */
export interface Chart {
  readonly title: string;
  readonly unit: string;
  /** Times of the values, in seconds. */
  readonly seconds: readonly number[];
  readonly lines: readonly Line[];
  /** Spans to shade, in seconds. */
  readonly spans: readonly { readonly from: number; readonly to: number }[];
}

const WIDTH = 640;
const HEIGHT = 190;
const MARGIN = { left: 60, right: 24, top: 10, bottom: 28 };
const GRID_LINES = 4;
const TIMES = 6;

/** Draws a chart as SVG with its title, a legend, and the last value and the maximum of each line. */
export function drawChart({ title, unit, seconds, lines, spans }: Chart): string {
  const end = seconds.at(-1) ?? 1;
  const top = niceCeiling(Math.max(...lines.flatMap(({ values }) => values.filter(Number.isFinite)), 0));
  const x = (second: number) =>
    MARGIN.left + (Math.min(second, end) / end) * (WIDTH - MARGIN.left - MARGIN.right);
  const y = (value: number) => HEIGHT - MARGIN.bottom - (value / top) * (HEIGHT - MARGIN.top - MARGIN.bottom);

  const shades = spans.map(({ from, to }) => {
    const width = Math.max(x(to) - x(from), 1);
    return `<rect class="restart" x="${x(from).toFixed(1)}" y="${MARGIN.top}" width="${width.toFixed(1)}" height="${HEIGHT - MARGIN.top - MARGIN.bottom}"/>`;
  });
  const grid = Array.from({ length: GRID_LINES + 1 }, (_, at) => (top * at) / GRID_LINES).map(
    (value) =>
      `<line class="grid" x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${y(value)}" y2="${y(value)}"/>` +
      `<text class="tick" x="${MARGIN.left - 8}" y="${y(value) + 4}" text-anchor="end">${shown(value)}</text>`,
  );
  const times = Array.from({ length: TIMES + 1 }, (_, at) => (end * at) / TIMES).map(
    (second) =>
      `<text class="tick" x="${x(second).toFixed(1)}" y="${HEIGHT - 8}" text-anchor="middle">${clockOf(second)}</text>`,
  );
  const drawn = lines.map(({ values }, at) => {
    const points = values.map((value, index) => [x(seconds[index] ?? 0), y(value)] as const);
    return `<path class="line line${at}" d="${pathOf(points)}"/>`;
  });
  const legend = lines.map(({ name, values }, at) => {
    const finite = values.filter(Number.isFinite);
    const [last, most] = [finite.at(-1) ?? Number.NaN, Math.max(...finite)];
    return `<li><span class="key key${at}"></span>${escapeHtml(name)}: last ${shown(last)}, maximum ${shown(most)}</li>`;
  });
  const description = `${title}, over ${clockOf(end)}`;
  return `<figure>
<figcaption><h2>${escapeHtml(title)}</h2><span class="unit">${escapeHtml(unit)}</span></figcaption>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeHtml(description)}">
${[...shades, ...grid, ...times, ...drawn].join("\n")}
</svg>
<ul class="legend">${legend.join("")}</ul>
</figure>`;
}

/** Returns a path through the points; it begins again after a point without a value. */
function pathOf(points: readonly (readonly [number, number])[]): string {
  let isDown = false;
  const steps = points.map(([x, y]) => {
    const command = isDown ? "L" : "M";
    isDown = Number.isFinite(y);
    return isDown ? `${command}${x.toFixed(1)} ${y.toFixed(1)}` : "";
  });
  return steps.join("");
}

/** Returns a round number that is at least the value. */
function niceCeiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)));
  const factor = [1, 2, 4, 5, 8, 10].find((candidate) => candidate * power >= value) ?? 10;
  return value === 0 ? 1 : factor * power;
}

function shown(value: number): string {
  if (!Number.isFinite(value)) return "–";
  return value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 });
}

function clockOf(seconds: number): string {
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}
