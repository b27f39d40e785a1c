import { access } from "node:fs/promises";
import { LanceError } from "../../client/exports.ts";
import { createNamespace, type Namespace } from "../../client/namespace.ts";
import { SILENT_LOG } from "../../client/silent-log.ts";
import { type OptionSpec, type OptionTable, UsageError } from "../../config/option-spec.ts";
import { SERVE_OPTIONS, type ServeOptions } from "../../config/options.ts";
import { openBackend, prepareEngine } from "../../gateway/open-backend.ts";

/** The options that say which catalog a command is about; they mean what they mean for `serve`. */
export const CONNECTION_OPTIONS: OptionTable = Object.fromEntries(
  Object.entries<OptionSpec>(SERVE_OPTIONS).filter(([, spec]) => spec.place),
);

/**
 * Connects, works, and closes.
 *
 * @param creates whether a directory that is missing is made.
 * @throws Error with one clear line.
 */
export async function withNamespace<T>(
  options: ServeOptions,
  creates: boolean,
  work: (namespace: Namespace) => Promise<T>,
): Promise<T> {
  if (options.backend === "dir" && !creates && !options.root.includes("://")) {
    await access(options.root).catch(() => {
      throw new UsageError(
        `there is no directory ${options.root}; --root, --uri or --address say where to look`,
      );
    });
  }
  prepareEngine();
  const backend = await openBackend(options, { log: SILENT_LOG });
  await using namespace = createNamespace(backend);
  return await work(namespace);
}

/** Returns a thrown value as a line for people: its message, and the name of the error if it has one. */
export function errorLine(thrown: unknown): string {
  if (thrown instanceof LanceError) return `${thrown.message.replaceAll(/\s*\n\s*/g, " ")} (${thrown.kind})`;
  return thrown instanceof Error ? thrown.message : String(thrown);
}
