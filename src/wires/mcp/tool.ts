import type { z } from "zod";
import type { Namespace } from "../../client/namespace.ts";

/** Parts that a tool works with. */
export interface ToolContext {
  /** The catalog as the caller may use it. */
  readonly namespace: Namespace;
  /** Aborts when the client cancels the call, or disconnects. */
  readonly signal: AbortSignal;
}

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
