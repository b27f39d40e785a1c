import { readFileSync } from "node:fs";
import { join } from "node:path";
import { REASONS } from "../../test/clients/methods/reasons.ts";
import type { MethodRow, Outcome } from "../../test/clients/methods/trial.ts";
import { markdownTable } from "./markdown.ts";

const results = join(import.meta.dirname, "..", "..", "test", "clients", "lancedb-methods.json");

/** Outcomes in the words of the table. */
const WORDS: Readonly<Record<Outcome, string>> = {
  served: "served",
  differs: "differs",
  client: "client",
  unsupported: "unsupported",
  fails: "**fails**",
};

/** The methods of LanceDB's clients with what `test/clients/lancedb-methods.test.ts` found of each. */
export function lancedbMethodTable(): string {
  const { methods, versions } = JSON.parse(readFileSync(results, "utf8")) as {
    readonly methods: readonly MethodRow[];
    readonly versions: { readonly python: string; readonly node: string };
  };
  checkReasons(methods);
  const rows = methods.map((row) => [
    `${row.object}: \`${row.method}\``,
    ...[row.sync, row.async, row.node].map((outcome) => (outcome === undefined ? "–" : WORDS[outcome])),
    row.routes.map((route) => `\`${route}\``).join("<br>"),
    REASONS[nameOf(row)] ?? "",
  ]);
  const headings = ["Method", "Python", "Python, async", "Node", "Routes", "Why, or how"];
  const clients = `The versions of the clients: Python ${versions.python}, Node ${versions.node}.`;
  return `${clients}\n\n${markdownTable(headings, rows)}`;
}

const nameOf = ({ object, method }: MethodRow) => `${object}.${method}`;

/** Makes sure that a reason is there for each method that some client does not have served, and for no other. */
function checkReasons(methods: readonly MethodRow[]): void {
  const partly = methods.filter(({ sync, async, node }) =>
    [sync, async, node].some((outcome) => outcome !== undefined && outcome !== "served"),
  );
  const names = new Set(partly.map(nameOf));
  const missing = [...names].filter((name) => REASONS[name] === undefined);
  const unused = Object.keys(REASONS).filter((name) => !names.has(name));
  if (missing.length + unused.length > 0)
    throw new Error(
      `test/clients/methods/reasons.ts lacks ${missing}; it has reasons for served methods: ${unused}`,
    );
}
