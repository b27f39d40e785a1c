import type { Rounds } from "../../bench/support/results.ts";
import { markdownTable } from "./markdown.ts";
import { missedText, originText, readResult, shown } from "./rounds.ts";

/** Longest times by the names of the calls. */
interface LoopResult {
  readonly calls: Readonly<
    Record<string, { readonly title: string; readonly held: Rounds; readonly computed: Rounds }>
  >;
}

const MOST_MS = 50;

/** How long calls hold the event loop, as `npm run bench -- loop … --keep` has written it. */
export function loopTable(): string {
  const { origin, calls } = readResult<LoopResult>("loop");
  const measured = Object.values(calls);
  const rows = measured.map(({ title, held, computed }) => [
    title,
    `${shown(held)}${missedText(held.median > MOST_MS)}`,
    shown(computed),
  ]);
  const table = markdownTable(["Call", "longest, ms", "computing, ms"], rows);
  return `${table}\n\n${originText(measured[0]?.held.rounds.length, origin)}.`;
}
