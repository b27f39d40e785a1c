import { keepResults, readKept } from "../support/results.ts";

/** The outcome of a benchmark of the report. */
export interface Outcome {
  /** Time that it took. */
  readonly seconds: number;
  /** The reason for which it was not measured. Default: it was. */
  readonly failure?: string;
  /** Numbers of goals. */
  readonly reached?: number;
  readonly missed?: number;
}

/** How far the report has come at a commit. */
export interface Progress {
  readonly commit: string;
  /** By the names of the benchmarks that have ended. */
  readonly outcomes: Record<string, Outcome>;
}

/** Reads how far the report came at its last run; returns undefined if there was none. */
export function readProgress(): Progress | undefined {
  return readKept<Progress>("report");
}

/** Writes how far the report has come. */
export function writeProgress(progress: Progress): void {
  keepResults("report", progress);
}
