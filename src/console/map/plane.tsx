import { useEffect, useRef, useState } from "preact/hooks";
import { colourOf } from "../shell/browser.ts";

/** Size of the drawing in its own units, and of the edge that stays free. */
const [WIDTH, HEIGHT, EDGE] = [1000, 440, 16];
/** Smallest radius of a point on a screen, in pixels. */
const LEAST_RADIUS = 2.5;
/** Radius of a point, and the distance from which a click means it. */
const [RADIUS, REACH] = [3.5, 24];

/** Colours of groups, by their names in the style sheet. */
const COLOURS = ["--group-1", "--group-2", "--group-3", "--group-4", "--group-5", "--group-6", "--group-7"];

interface PlaneProps {
  /** Two numbers for each point. */
  readonly points: Float32Array;
  /** Group of each point. Default: they are of one colour. */
  readonly groups: readonly (number | undefined)[] | undefined;
  /** Names of the groups; an empty one stands for all others. */
  readonly names: readonly string[];
  readonly chosen: number | undefined;
  onChosen(point: number): void;
}

/** Points in a plane. A click chooses one, and so do the arrow keys, from left to right. */
export function Plane({ points, groups, names, chosen, onChosen }: PlaneProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const places = placesOf(points);
  const isDark = useDarkScheme();
  useEffect(() => {
    if (canvas.current !== null) draw(canvas.current, places, groups, chosen);
  }, [points, groups, chosen, isDark]);
  const choose = (event: MouseEvent) => {
    const { left, top, width, height } = (event.currentTarget as Element).getBoundingClientRect();
    const [x, y] = [((event.clientX - left) / width) * WIDTH, ((event.clientY - top) / height) * HEIGHT];
    const distances = places.map((place) => Math.hypot(place[0] - x, place[1] - y));
    const nearest = distances.indexOf(Math.min(...distances));
    if ((distances[nearest] ?? REACH) < REACH) onChosen(nearest);
  };
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const order = places.map((_, at) => at).toSorted((a, b) => (places[a]?.[0] ?? 0) - (places[b]?.[0] ?? 0));
    const before = chosen === undefined ? (step > 0 ? -1 : order.length) : order.indexOf(chosen);
    const next = order[Math.max(0, Math.min(order.length - 1, before + step))];
    if (next !== undefined) onChosen(next);
  };
  return (
    <figure class="panel map">
      <canvas
        ref={canvas}
        width={WIDTH * 2}
        height={HEIGHT * 2}
        role="img"
        tabIndex={0}
        aria-label={`Map of ${places.length} vectors`}
        onClick={choose}
        onKeyDown={move}
      />
      {names.length > 0 && (
        <figcaption class="legend">
          {names.map((name, at) => (
            <span key={name}>
              <span class={`swatch group-${name === "" ? "rest" : at + 1}`} />
              {name === "" ? "others" : name}
            </span>
          ))}
        </figcaption>
      )}
    </figure>
  );
}

/** Returns where points are in the drawing. */
function placesOf(points: Float32Array): readonly (readonly [x: number, y: number])[] {
  const count = points.length / 2;
  let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let at = 0; at < count; at++) {
    const [x, y] = [points[2 * at] ?? 0, points[2 * at + 1] ?? 0];
    [left, right, low, high] = [Math.min(left, x), Math.max(right, x), Math.min(low, y), Math.max(high, y)];
  }
  const along = (value: number, from: number, to: number, size: number) =>
    to > from ? EDGE + ((value - from) / (to - from)) * (size - 2 * EDGE) : size / 2;
  return Array.from({ length: count }, (_, at) => [
    along(points[2 * at] ?? 0, left, right, WIDTH),
    HEIGHT - along(points[2 * at + 1] ?? 0, low, high, HEIGHT),
  ]);
}

function draw(
  canvas: HTMLCanvasElement,
  places: readonly (readonly [number, number])[],
  groups: PlaneProps["groups"],
  chosen: number | undefined,
): void {
  const context = canvas.getContext("2d");
  if (context === null) return;
  const colours = COLOURS.map((name) => colourOf(canvas, name));
  const [rest, accent, text] = [
    colourOf(canvas, "--group-rest"),
    colourOf(canvas, "--accent"),
    colourOf(canvas, "--text"),
  ];
  context.setTransform(2, 0, 0, 2, 0, 0);
  context.clearRect(0, 0, WIDTH, HEIGHT);
  context.globalAlpha = 0.75;
  const radius = Math.max(RADIUS, (LEAST_RADIUS * WIDTH) / Math.max(1, canvas.clientWidth));
  const dot = ([x, y]: readonly [number, number]) => {
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fill();
  };
  for (const [at, place] of places.entries()) {
    const group = groups?.[at];
    context.fillStyle = groups === undefined ? accent : group === undefined ? rest : (colours[group] ?? rest);
    dot(place);
  }
  const place = chosen === undefined ? undefined : places[chosen];
  if (place === undefined) return;
  context.globalAlpha = 1;
  context.strokeStyle = text;
  context.lineWidth = 2;
  context.beginPath();
  context.arc(place[0], place[1], radius * 2.2, 0, 2 * Math.PI);
  context.stroke();
}

/** Whether the browser shows the dark scheme. */
function useDarkScheme(): boolean {
  const [query] = useState(() => matchMedia("(prefers-color-scheme: dark)"));
  const [isDark, setDark] = useState(query.matches);
  useEffect(() => {
    const look = () => setDark(query.matches);
    query.addEventListener("change", look);
    return () => query.removeEventListener("change", look);
  }, [query]);
  return isDark;
}
