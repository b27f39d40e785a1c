import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { colourOf } from "../shell/browser.ts";

/** A line of a chart. */
export interface Line {
  readonly name: string;
  readonly values: readonly (number | null)[];
  /** Custom property of the style sheet with its colour. */
  readonly colour: string;
}

interface ChartProps {
  readonly title: string;
  /** In seconds. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
}

const HEIGHT = 180;
/** Shortest time that a chart spans. */
const SHORTEST_SECONDS = 60;
/** Space for the labels of values, in pixels. */
const AXIS_WIDTH = 72;

/** Least space between two labels of times, in pixels. */
const TIME_WIDTH = 90;

/** A chart over time, with its newest values as a text. */
export function Chart({ title, times, lines, format }: ChartProps) {
  const element = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot>(null);
  useEffect(() => {
    const { current } = element;
    if (current === null) return;
    const plot = new uPlot(optionsOf(current, lines, format), [[]], current);
    chart.current = plot;
    const observer = new ResizeObserver(() => plot.setSize({ width: current.clientWidth, height: HEIGHT }));
    observer.observe(current);
    // Colours come from the style sheet.
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const redraw = () => plot.redraw();
    scheme.addEventListener("change", redraw);
    return () => {
      scheme.removeEventListener("change", redraw);
      observer.disconnect();
      plot.destroy();
    };
  }, []);
  useEffect(() => {
    chart.current?.setData([[...times], ...lines.map(({ values }) => [...values])]);
  });
  return (
    <figure class="panel chart">
      <figcaption>
        <h2>{title}</h2>
        <ul class="legend">
          {lines.map(({ name, values, colour }) => {
            const value = values.at(-1);
            return (
              <li key={name}>
                <span class="swatch" aria-hidden="true" style={{ background: `var(${colour})` }} />
                {name}: <strong>{value === null || value === undefined ? "–" : format(value)}</strong>
              </li>
            );
          })}
        </ul>
      </figcaption>
      <div ref={element} aria-hidden="true" />
    </figure>
  );
}

/** Returns the time of day here, such as `22:18:35`, as the console writes times everywhere. */
function timeOfDay(seconds: number): string {
  return new Date(seconds * 1000).toTimeString().slice(0, 8);
}

function optionsOf(
  element: HTMLElement,
  lines: readonly Line[],
  format: (value: number) => string,
): uPlot.Options {
  const colour = (name: string) => () => colourOf(element, name);
  const axis = {
    stroke: colour("--muted"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
  };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { range: (_plot, first, last) => [Math.min(first, last - SHORTEST_SECONDS), last] },
      y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] },
    },
    axes: [
      { ...axis, space: TIME_WIDTH, values: (_plot, seconds) => seconds.map(timeOfDay) },
      { ...axis, size: AXIS_WIDTH, values: (_plot, values) => values.map(format) },
    ],
    series: [
      {},
      ...lines.map(({ name, colour: property }) => ({ label: name, stroke: colour(property), width: 2 })),
    ],
  };
}
