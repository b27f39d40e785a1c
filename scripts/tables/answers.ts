import { type Cell, type Figures, numberText } from "../../bench/support/figures.ts";

/** Returns the kept figures of a benchmark. */
export type FiguresOf = (name: string) => readonly Figures[] | undefined;

/** A value of a benchmark: a row, by the strings with which its first cells begin, and a column, by its head. */
type Find = (name: string, row: readonly string[], head: string) => number;

/** A part of an answer: words, or a value with its unit. */
type Part = string | readonly [value: number, unit: string];

const NOT_MEASURED = "(not measured)";

/** The questions, which are headings of the page, and the answers by figures. */
const QUESTIONS: Readonly<Record<string, (find: Find) => readonly Part[]>> = {
  "How fast is a call?": (find) => [
    [find("catalog", ["2,000", "describe"], "gateway, /s"), "describes a second over 2,000 tables,"],
    [find("catalog", ["2,000", "describe"], "gateway, ×"), "times the Rust adapter;"],
    [find("bucket", ["100", "describe", "gateway"], "p50, ms"), "ms on a bucket 20 ms away."],
  ],
  "How many tables, in how much memory?": (find) => [
    "A million in",
    [find("memory", ["1,000,000 tables, 1 worker"], "at rest"), "MiB;"],
    [find("start", ["an empty directory"], "resident, MB"), "MB idle;"],
    [find("start", ["an empty directory"], "to /readyz, s"), "s to the first answer."],
  ],
  "What do rows cost?": (find) => {
    const [search, scan] = [["search with IVF_PQ, p50"], ["scan of 100,000 rows"]];
    return [
      "A search with an index takes",
      [
        find("remote", search, "gateway") - find("remote", search, "library"),
        "ms more than in the local library;",
      ],
      "a scan has",
      [find("remote", scan, "gateway") / find("remote", scan, "library"), "times its rate."],
    ];
  },
  "What does a proxy cost?": (find) => [
    [find("proxy", ["over REST"], "added"), "ms of a call;"],
    [find("proxy", [`${REST}: gateway`], "calls per second of a core"), "calls in a CPU second,"],
    [find("proxy", [`${REST}: Rust REST adapter`], "the gateway is, ×"), "times the Rust adapter."],
  ],
  "What does durability cost?": (find) => [
    "An added row takes",
    [find("remote", ["add a row, p50"], "gateway"), "ms; in the library"],
    [find("remote", ["add a row, p50"], "library"), "ms, and with syncs"],
    [find("remote", ["add a row, p50"], "library, synced"), "ms."],
  ],
};

const REST = "REST to REST, 64 connections";

/** How the gateway compares with the Rust adapter. */
const ADAPTER = (find: Find): readonly Part[] => [
  "The gateway serves the directory faster: describe",
  [find("catalog", ["2,000", "describe"], "gateway, ×"), "times at 2,000 tables and"],
  [
    find("catalog", ["100,000", "describe"], "gateway, ×"),
    "times at 100,000 ([performance.md](performance.md#catalog)).",
  ],
  "As a proxy in front of a REST catalog it serves",
  [find("proxy", [`${REST}: Rust REST adapter`], "the gateway is, ×"), "times as many calls in a CPU second"],
  "([performance.md](performance.md#in-front-of-another-catalog)).",
];

/** Returns the comparison with the Rust adapter, from the figures that are kept. */
export function adapterText(figuresOf: FiguresOf): string {
  return sentenceOf(ADAPTER, figuresOf);
}

/** Returns the answers to the page's questions, each from the figures that are kept. */
export function answersText(figuresOf: FiguresOf): string {
  return Object.entries(QUESTIONS)
    .map(([question, answer], at) => {
      return `${at + 1}. [${question}](#${anchorOf(question)}) ${sentenceOf(answer, figuresOf)}`;
    })
    .join("\n");
}

function sentenceOf(parts: (find: Find) => readonly Part[], figuresOf: FiguresOf): string {
  const find: Find = (name, row, head) => findValue(figuresOf(name) ?? [], row, head);
  return parts(find).map(partText).join(" ");
}

function partText(part: Part): string {
  if (typeof part === "string") return part;
  const [value, unit] = part;
  return `${Number.isFinite(value) ? numberText(value) : NOT_MEASURED} ${unit}`;
}

/** Returns a value of figures, or NaN if there is none. */
function findValue(figures: readonly Figures[], row: readonly string[], head: string): number {
  for (const { heads, rows } of figures) {
    const found = rows.find(({ cells }) => row.every((text, at) => isNamed(cells[at], text)));
    const cell = found?.cells[heads.indexOf(head)];
    if (cell !== undefined) return typeof cell === "object" ? cell.median : Number(cell || Number.NaN);
  }
  return Number.NaN;
}

const isNamed = (cell: Cell | undefined, text: string) => typeof cell === "string" && cell.startsWith(text);

const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w -]/g, "")
    .replaceAll(" ", "-");
