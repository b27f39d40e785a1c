import { once } from "node:events";
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { readTable } from "../../config/layers.ts";
import type { OptionTable, OptionValues } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import { createJsonEncoders } from "../../transcode/json/encode.ts";
import { readConnection } from "../contexts.ts";
import { confirm, YES_OPTION } from "../terminal/confirm.ts";
import { forTerminal, itemJson, rowsFor } from "../terminal/terminal-text.ts";
import {
  type CatalogAccess,
  CONNECTION_OPTIONS,
  type Connected,
  JSON_OPTION,
  withNamespace,
} from "./catalog.ts";
import type { CommandDefinition } from "./command.ts";
import { type ListForm, listText } from "./text-table.ts";

type WithJson<T> = T & { readonly json: typeof JSON_OPTION };

/** Context of a running command. */
export interface Work<T extends OptionTable> extends Connected {
  readonly operands: readonly string[];
  readonly options: OptionValues<WithJson<T>>;
  /** The catalog, as the command line and the saved connection name it. */
  readonly connection: ServeOptions;
  /** Aborts at Ctrl-C. */
  readonly signal: AbortSignal;
  /** Writes to standard output, with backpressure; bytes are rows, as text if it is a terminal. */
  print(text: string | Uint8Array): Promise<void>;
  /** Prints a result: the value as JSON if the user asks for it, and otherwise the text. */
  answer(value: unknown, text: () => string): Promise<void>;
  /** Prints a list of results as they arrive, in the same two ways. */
  answerList<Item>(items: AsyncIterable<Item>, form: ListForm<Item>): Promise<void>;
}

/** Definition of a command on a catalog. */
export interface CatalogCommandOptions<T extends OptionTable> {
  /** The operands as the help shows them, for example `<TABLE> [FILE]`. Default: none. */
  readonly operands?: string;
  /** The command's own options, in addition to `--json` and those of the connection. */
  readonly options: T;
  /** Access to the catalog. Default: the command changes one that exists. */
  readonly access?:
    | CatalogAccess
    | ((options: OptionValues<WithJson<T>>, operands: readonly string[]) => CatalogAccess);
  /**
   * Returns what is lost for good, for the question that a terminal is asked; undefined for nothing. The command then has
   * `--yes`. Default: the command removes nothing.
   */
  readonly question?: (line: Pick<Work<T>, "operands" | "options">) => string | undefined;
  run(work: Work<T>): Promise<void>;
}

/** A server, or the storage, may have carried out a request that is cancelled. */
const UNCLEAR = "cancelled; the change may have been made, so look before you repeat it";

/** Exit codes of a command that a signal ended, as in shells. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * Creates a command that works on a catalog through the client. Ctrl-C cancels it; a second Ctrl-C ends the process.
 */
export function catalogCommand<const T extends OptionTable>(
  command: CatalogCommandOptions<T>,
): CommandDefinition {
  const { question } = command;
  const own: WithJson<T> = {
    ...command.options,
    ...(question && { yes: YES_OPTION }),
    json: JSON_OPTION,
  };
  return {
    ...(command.operands !== undefined && { operands: command.operands }),
    groups: [
      { heading: "Options", options: own, environment: false },
      { heading: "Catalog", options: CONNECTION_OPTIONS, environment: true },
    ],
    async run({ operands, layers }, environment) {
      const options = readTable(own, layers);
      const { access: given = "change" } = command;
      const access = typeof given === "function" ? given(options, operands) : given;
      const connection = await readConnection(layers, environment);
      using interruption = watchForSignals();
      const { signal } = interruption;
      const answer = (value: unknown, text: () => string) =>
        print(options.json ? jsonText(value) : forTerminal(text()));
      const answerList = async <Item>(items: AsyncIterable<Item>, form: ListForm<Item>) => {
        for await (const piece of listText(items, options.json === true, form)) await print(piece);
      };
      let hasBegun = false;
      try {
        const { yes } = readTable({ yes: YES_OPTION }, question ? layers : []);
        const loss = yes ? undefined : question?.({ operands, options });
        if (loss !== undefined) await confirm(loss, signal);
        hasBegun = true;
        await withNamespace(connection, access, (connected) =>
          command.run({ ...connected, operands, options, connection, signal, print, answer, answerList }),
        );
        return 0;
      } catch (thrown) {
        if (!signal.aborted) throw thrown;
        const isHarmless = !hasBegun || ["read", "wait"].includes(access);
        const message = isHarmless ? "cancelled" : UNCLEAR;
        const line = options.json
          ? JSON.stringify({ error: { kind: "Cancelled", message } })
          : `lance-gateway: ${message}`;
        process.stderr.write(`${line}\n`);
        return EXIT_CODES[signal.reason as keyof typeof EXIT_CODES];
      }
    },
  };
}

/** Aborts a signal, whose reason is the name of the signal, at Ctrl-C; a second one ends the process. */
function watchForSignals(): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  const interrupt = (name: NodeJS.Signals) => {
    // Progress takes its bar away when the process exits.
    if (controller.signal.aborted) process.exit(EXIT_CODES[name as keyof typeof EXIT_CODES]);
    controller.abort(name);
  };
  const names = Object.keys(EXIT_CODES);
  for (const name of names) process.on(name, interrupt);
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      for (const name of names) process.off(name, interrupt);
    },
  };
}

async function print(text: string | Uint8Array): Promise<void> {
  const shown = typeof text === "string" ? text : rowsFor(process.stdout, text);
  if (!process.stdout.write(shown)) await once(process.stdout, "drain");
}

/** Returns a value as a line of JSON, a list with a line for each item; 64-bit integers are numbers. */
export function jsonText(value: unknown): string {
  if (!Array.isArray(value)) return `${itemJson(value)}\n`;
  return value.length === 0 ? "[]\n" : `[\n${value.map((item) => `  ${itemJson(item)}`).join(",\n")}\n]\n`;
}

/** Returns a message in the form of the REST API. */
export function jsonOf<D extends DescMessage>(schema: D, message: MessageShape<D>): unknown {
  return JSON.parse(createJsonEncoders().message(schema)(message));
}
