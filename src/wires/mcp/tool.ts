import type { z } from "zod";
import type { Namespace } from "../../client/namespace.ts";

/** Parts that a tool works with. */
export interface ToolContext {
  /** The catalog as the caller may use it. */
  readonly namespace: Namespace;
  /** Runs statements in SQL. Default: SQL is not offered. */
  readonly sql?: RunSql | undefined;
  /** Aborts when the client cancels the call, or disconnects. */
  readonly signal: AbortSignal;
}

/** Runs a statement in SQL as a caller, whose tables a namespace reads, and yields its rows as an Arrow IPC stream. */
export type RunSql = (
  statement: string,
  namespace: Namespace,
  signal: AbortSignal,
) => AsyncIterable<Uint8Array>;

/** A tool that a model may call. */
export interface Tool<S extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly title: string;
  /** Purpose and use, for the model. */
  readonly description: string;
  readonly input: S;
  /** Effect on data: none, an addition, or a change that can lose something. */
  readonly effect: "reads" | "adds" | "changes";
  /**
   * Returns the result as text, JSON in most tools.
   *
   * @throws LanceError, which the model gets as the tool's error.
   */
  run(input: z.output<S>, context: ToolContext): Promise<string>;
}

/** Defines a tool; its input has the type of the schema. */
export function defineTool<S extends z.ZodObject>(tool: Tool<S>): Tool {
  return tool as unknown as Tool;
}
