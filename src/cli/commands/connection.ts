import { access } from "node:fs/promises";
import { LanceError } from "../../client/exports.ts";
import { createNamespace, type Namespace } from "../../client/namespace.ts";
import { SILENT_LOG } from "../../client/silent-log.ts";
import { type OptionSpec, UsageError } from "../../config/option-spec.ts";
import { SERVE_OPTIONS, type ServeOptions } from "../../config/options.ts";
import { type Environment, environmentLayer, flagLayer, type Layer } from "../../config/parse-options.ts";
import { settleOptions } from "../../config/serve-options.ts";
import { openBackend } from "../../gateway/open-backend.ts";

/** The options that say which catalog a command is about; they mean what they mean for `serve`. */
export const CONNECTION_OPTIONS: Readonly<Record<string, OptionSpec>> = Object.fromEntries(
  Object.entries<OptionSpec>(SERVE_OPTIONS).filter(([, spec]) => spec.place),
);

/** Reads which catalog a command is about. */
export function readConnection(flags: Layer, environment: Environment): ServeOptions {
  const variables = environmentLayer(environment);
  // What goes for a server beyond the place of its data goes for no command.
  const layers: readonly Layer[] = [flags, (spec) => (spec.place ? variables(spec) : undefined)];
  return settleOptions(layers);
}

/** The layer of a command's flags, those of the connection included. */
export function connectionFlags(
  flags: readonly string[],
  specs: Readonly<Record<string, OptionSpec>>,
): Layer {
  return flagLayer(flags, { ...CONNECTION_OPTIONS, ...specs });
}

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
  // The engine writes its own warnings; only its errors are worth a line.
  process.env["LANCEDB_LOG"] ??= "error";
  process.env["LANCE_DEFAULT_IO_BUFFER_SIZE"] ??= String(16 * 1024 ** 2);
  const backend = await openBackend(options, SILENT_LOG);
  await using namespace = createNamespace(backend);
  return await work(namespace);
}

/** What a thrown value is to people: its message, and the name of the error where it has one. */
export function errorLine(thrown: unknown): string {
  if (thrown instanceof LanceError) return `${thrown.message.replaceAll(/\s*\n\s*/g, " ")} (${thrown.kind})`;
  return thrown instanceof Error ? thrown.message : String(thrown);
}
