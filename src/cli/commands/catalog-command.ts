import { once } from "node:events";
import type { Namespace } from "../../client/namespace.ts";
import { readTable } from "../../config/layers.ts";
import type { OptionTable, OptionValues } from "../../config/option-spec.ts";
import { readServeOptions } from "../../config/serve-options.ts";
import { JSON_OPTION } from "./catalog.ts";
import type { CommandDefinition } from "./command.ts";
import { CONNECTION_OPTIONS, errorLine, withNamespace } from "./connection.ts";

type WithJson<T> = T & { readonly json: typeof JSON_OPTION };

/** Context of a running command. */
export interface Work<T extends OptionTable> {
  readonly namespace: Namespace;
  readonly operands: readonly string[];
  readonly options: OptionValues<WithJson<T>>;
  /** Aborts at Ctrl-C. */
  readonly signal: AbortSignal;
  /** Writes to standard output, with backpressure. */
  print(text: string): Promise<void>;
}

/** Definition of a command on a catalog. */
export interface CatalogCommandOptions<T extends OptionTable> {
  /** The operands as the help shows them, for example `<TABLE> [FILE]`. */
  readonly operands: string;
  /** The command's own options, in addition to `--json` and those of the connection. */
  readonly options: T;
  /** Whether the command creates a missing directory. Default: false. */
  readonly creates?: boolean;
  run(work: Work<T>): Promise<void>;
}

/** Exit code of a command that Ctrl-C ended, as in shells. */
const INTERRUPTED = 130;

/**
 * Creates a command that works on a catalog through the client. Ctrl-C cancels it; a second Ctrl-C ends the process.
 */
export function catalogCommand<const T extends OptionTable>(
  command: CatalogCommandOptions<T>,
): CommandDefinition {
  const own: WithJson<T> = { ...command.options, json: JSON_OPTION };
  return {
    operands: command.operands,
    groups: [
      { heading: "Options", options: own, environment: false },
      { heading: "Catalog", options: CONNECTION_OPTIONS, environment: true },
    ],
    async run({ operands, layers }) {
      const options = readTable(own, layers);
      const connection = readServeOptions(layers);
      const controller = new AbortController();
      const interrupt = () => controller.abort();
      process.once("SIGINT", interrupt);
      process.stdout.on("error", leaveQuietly);
      try {
        await withNamespace(connection, command.creates ?? false, (namespace) =>
          command.run({ namespace, operands, options, signal: controller.signal, print }),
        );
        return 0;
      } catch (thrown) {
        if (!controller.signal.aborted) throw thrown instanceof TypeError ? thrown : asLine(thrown);
        process.stderr.write("lance-gateway: cancelled\n");
        return INTERRUPTED;
      } finally {
        process.off("SIGINT", interrupt);
        process.stdout.off("error", leaveQuietly);
      }
    },
  };
}

function asLine(thrown: unknown): unknown {
  if (!(thrown instanceof Error)) return thrown;
  thrown.message = errorLine(thrown);
  return thrown;
}

async function print(text: string): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, "drain");
}

/** A reader that stops early, such as `head`, is not a failure. */
function leaveQuietly(error: NodeJS.ErrnoException): void {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
}
