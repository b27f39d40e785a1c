import { markdownRow, markdownTable } from "../../scripts/tables/markdown.ts";
import { keepResults, type Origin, type Rounds, timesOf } from "./results.ts";

/** A cell of a table: the rounds of a measured value, a single value, or a string. */
export type Cell = Rounds | number | string;

/** A bound that a measured value is to keep. */
export interface Goal {
  /** The measured value. */
  readonly of: number;
  /** Minimum of the value. Default: none. */
  readonly least?: number;
  /** Maximum of the value. Default: none. */
  readonly most?: number;
  /** Default: none. */
  readonly unit?: string;
}

/** A row of figures, and the goals that its values are to reach. */
export interface Row {
  readonly cells: readonly Cell[];
  readonly goals: readonly Goal[];
}

/** The figures of a benchmark. */
export interface Figures {
  readonly heads: readonly string[];
  readonly rows: readonly Row[];
}

/** Figures that are kept for the documentation. */
export interface Kept {
  readonly origin: Origin;
  /** The command that measured them, below `npm run bench --`. */
  readonly command: string;
  /** The most rounds of a value. */
  readonly rounds: number;
  readonly figures: readonly Figures[];
}

/** Keeps figures for the documentation. */
export function keepFigures(name: string, measured: Omit<Kept, "rounds">): void {
  const cells = measured.figures.flatMap(({ rows }) => rows.flatMap((row) => row.cells));
  const counts = cells.map((cell) => (typeof cell === "object" ? cell.rounds.length : 1));
  const { figures, ...origin } = measured;
  keepResults(name, { ...origin, rounds: Math.max(1, ...counts), figures } satisfies Kept);
}

/** Figures that grow while a benchmark runs. */
export interface FiguresInProgress extends Figures {
  /** Adds a row and prints it. */
  add(cells: readonly Cell[], ...goals: readonly Goal[]): void;
}

/** Starts the figures of a benchmark, which are printed row by row as a table in Markdown. */
export function startFigures(...heads: readonly string[]): FiguresInProgress {
  const rows: Row[] = [];
  console.log(`\n${markdownTable([...heads, GOAL_HEAD], [])}`);
  const add = (cells: readonly Cell[], ...goals: readonly Goal[]) => {
    rows.push({ cells, goals });
    console.log(markdownRow([...cells.map(cellText), goalsText(goals)]));
  };
  return { heads, rows, add };
}

/**
 * Adds the rates of contestants: of the first one, and how many times the rate of each other one it has.
 *
 * @param least the least multiple by the name of the other one
 */
export function addContest(
  figures: FiguresInProgress,
  title: string,
  rates: Readonly<Record<string, Rounds>>,
  least: Readonly<Record<string, number>>,
): void {
  const [[name, first], ...others] = Object.entries(rates) as [[string, Rounds], ...[string, Rounds][]];
  figures.add([`${title}: ${name}`, first, ""]);
  for (const [other, rate] of others) {
    const times = timesOf(first, rate);
    const goal = least[other];
    const goals = goal === undefined ? [] : [{ of: times.median, least: goal, unit: "×" }];
    figures.add([`${title}: ${other}`, rate, times], ...goals);
  }
}

const GOAL_HEAD = "goal";

/** Returns figures as a table in Markdown, with a column of goals if there is one. */
export function figuresText({ heads, rows }: Figures): string {
  const hasGoals = rows.some(({ goals }) => goals.length > 0);
  return markdownTable(
    [...heads, ...(hasGoals ? [GOAL_HEAD] : [])],
    rows.map(({ cells, goals }) => [...cells.map(cellText), ...(hasGoals ? [goalsText(goals)] : [])]),
  );
}

/** Returns a cell as a string: of rounds, the median with its range. */
export function cellText(cell: Cell): string {
  if (typeof cell === "string") return cell;
  if (typeof cell === "number") return numberText(cell);
  const { median, min, max } = cell;
  return min === max ? numberText(median) : `${numberText(median)} (${numberText(min)}–${numberText(max)})`;
}

/** Returns a number with three digits, or as many as a whole number has. */
export function numberText(value: number): string {
  if (!Number.isFinite(value)) return "?";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

/** Whether a goal is reached; a value that is not a number misses it. */
export function isReached({ of, least, most }: Goal): boolean {
  return Number.isFinite(of) && (least === undefined || of >= least) && (most === undefined || of <= most);
}

/** Goals that a row shows each. */
const SHOWN_GOALS = 2;

/** Returns the goals of a row; of many, those that are missed. */
function goalsText(goals: readonly Goal[]): string {
  if (goals.length <= SHOWN_GOALS) return goals.map(goalText).join("; ");
  const missed = goals.filter((goal) => !isReached(goal));
  return missed.length === 0 ? "reached" : missed.map(goalText).join("; ");
}

function goalText(goal: Goal): string {
  const { least, most, unit } = goal;
  const bound = least === undefined ? `≤ ${numberText(most ?? Number.NaN)}` : `≥ ${numberText(least)}`;
  return `${bound}${unit === undefined ? "" : ` ${unit}`}, ${isReached(goal) ? "reached" : "**missed**"}`;
}
