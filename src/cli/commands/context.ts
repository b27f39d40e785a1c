import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { findGiven, type Layer, readTable } from "../../config/layers.ts";
import { fileKey, type OptionTable, UsageError } from "../../config/option-spec.ts";
import { parseSwitch, parseText } from "../../config/parsers.ts";
import { backendIn, readServeOptions } from "../../config/serve-options.ts";
import {
  type Context,
  type Contexts,
  changeContexts,
  contextsPath,
  type KeySource,
  layerOf,
  readContexts,
} from "../contexts.ts";
import { placeOf } from "../place.ts";
import { confirm, YES_OPTION } from "../terminal/confirm.ts";
import { JSON_OPTION, PLACE_OPTIONS } from "./catalog.ts";
import { jsonText } from "./catalog-command.ts";
import type { CommandDefinition } from "./command.ts";
import { textTable } from "./text-table.ts";

const ADD_OPTIONS = {
  keyFile: {
    flag: "key-file",
    value: "FILE",
    help: "File with the API key of the calls, which is read for each command.",
    parse: parseText,
  },
  keyEnv: {
    flag: "key-env",
    value: "VARIABLE",
    help: "Environment variable with the API key, which is read for each command.",
    parse: parseText,
  },
  keyStdin: {
    flag: "key-stdin",
    help: "Read the API key from standard input, and save it with the connection.",
    fallback: "false",
    parse: parseSwitch,
  },
  bearer: {
    flag: "bearer",
    help: "Send the key as a bearer token, in the header authorization, instead of x-api-key.",
    fallback: "false",
    parse: parseSwitch,
  },
  force: {
    flag: "force",
    help: "Replace a saved connection of the name.",
    fallback: "false",
    parse: parseSwitch,
  },
  json: JSON_OPTION,
} as const satisfies OptionTable;

/** Names that shells and completions pass unchanged. */
const NAME = /^[\w.-]+$/;

/** The commands for which a connection is saved may have `--rows here`, which is not saved. */
const ROWS_HERE: Layer = ({ flag }) =>
  flag === "rows" ? { source: "a later command", texts: ["here"] } : undefined;

/** `lance-gateway context add`: saves a connection. */
export const contextAdd: CommandDefinition = {
  operands: "<NAME>",
  groups: [
    { heading: "Options", options: ADD_OPTIONS, environment: false },
    { heading: "Catalog", options: PLACE_OPTIONS, environment: false },
  ],
  async run({ operands: [name = ""], layers }, environment) {
    if (!NAME.test(name)) throw new UsageError("NAME must have letters, digits, _, - and . only");
    const flags = layers.slice(0, 1);
    const options = readTable(ADD_OPTIONS, flags);
    if (!flags.some((layer) => backendIn(layer) !== undefined))
      throw new UsageError("--uri, --address or --root is missing");
    const key = await keyFrom(options);
    if (options.bearer && key === undefined)
      throw new UsageError("--bearer requires --key-file, --key-env or --key-stdin");
    const context: Context = {
      options: placesIn(flags),
      ...(key !== undefined && { key }),
      ...(options.bearer && { bearer: true }),
    };
    const { backend } = readServeOptions([layerOf(context, "--"), ROWS_HERE]);
    if (backend === "dir" && key !== undefined) throw new UsageError("a directory takes no key");
    let isCurrent = false;
    await changeContexts(contextsPath(environment), ({ current = name, contexts }) => {
      if (Object.hasOwn(contexts, name) && !options.force)
        throw new UsageError(`there is a context ${name}; --force replaces it`);
      isCurrent = current === name;
      return { current, contexts: { ...contexts, [name]: context } };
    });
    const line = `saved context ${name}${isCurrent ? ", which is in use" : ""}\n`;
    process.stdout.write(options.json ? jsonText({ name, current: isCurrent }) : line);
    return 0;
  },
};

interface KeyChoice {
  readonly keyFile: string | undefined;
  readonly keyEnv: string | undefined;
  readonly keyStdin: boolean;
}

async function keyFrom({ keyFile, keyEnv, keyStdin }: KeyChoice): Promise<KeySource | undefined> {
  if ([keyFile !== undefined, keyEnv !== undefined, keyStdin].filter(Boolean).length > 1)
    throw new UsageError("--key-file, --key-env and --key-stdin contradict each other");
  if (keyFile !== undefined) return { file: resolve(keyFile) };
  if (keyEnv !== undefined) return { variable: keyEnv };
  if (!keyStdin) return undefined;
  const stored = (await text(process.stdin)).trim();
  if (stored === "") throw new UsageError("standard input has no key");
  return { stored };
}

/** Returns the options that name the data; relative paths become absolute ones. */
function placesIn(layers: readonly Layer[]): Context["options"] {
  const entries = Object.values(PLACE_OPTIONS).flatMap((spec) => {
    const texts = findGiven(spec, layers)?.texts;
    if (texts === undefined) return [];
    const isPath = (each: string) => spec.value === "FILE" || (spec.flag === "root" && !each.includes("://"));
    return [[fileKey(spec), texts.map((each) => (isPath(each) ? resolve(each) : each))]];
  });
  return Object.fromEntries(entries) as Context["options"];
}

/** Creates a command on the saved connections. */
function contextCommand(
  operands: string | undefined,
  run: (path: string, name: string) => Promise<{ readonly value: unknown; readonly text: string }>,
): CommandDefinition {
  const options = { json: JSON_OPTION };
  return {
    ...(operands !== undefined && { operands }),
    groups: [{ heading: "Options", options, environment: false }],
    async run({ operands: [name = ""], layers }, environment) {
      const { json } = readTable(options, layers);
      const { value, text: words } = await run(contextsPath(environment), name);
      process.stdout.write(json ? jsonText(value) : words);
      return 0;
    },
  };
}

/** `lance-gateway context use`: chooses the connection of commands that name none. */
export const contextUse = contextCommand("<CONTEXT>", async (path, name) => {
  await changeContexts(path, (all) => ({ ...all, current: required(all, name) }));
  return { value: { name, current: true }, text: `context ${name} is in use\n` };
});

const RM_OPTIONS = { yes: YES_OPTION, json: JSON_OPTION } as const satisfies OptionTable;

/** `lance-gateway context rm`: removes a saved connection. */
export const contextRm: CommandDefinition = {
  operands: "<CONTEXT>",
  groups: [{ heading: "Options", options: RM_OPTIONS, environment: false }],
  async run({ operands: [name = ""], layers }, environment) {
    const { yes, json } = readTable(RM_OPTIONS, layers);
    const path = contextsPath(environment);
    required(await readContexts(path), name);
    if (!yes) await confirm(`Remove the saved connection ${name}, and its key if it is saved`);
    await changeContexts(path, (all) => {
      const { [required(all, name)]: _, ...contexts } = all.contexts;
      const { current } = all;
      return { ...(current !== undefined && current !== name && { current }), contexts };
    });
    process.stdout.write(json ? jsonText({ name, removed: true }) : `removed context ${name}\n`);
    return 0;
  },
};

/** `lance-gateway context ls`: lists the saved connections. */
export const contextLs = contextCommand(undefined, async (path) => {
  const { current, contexts } = await readContexts(path);
  const facts = Object.entries(contexts)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, context]) => ({ name, current: name === current, ...whereTo(context) }));
  const rows = facts.map((each) => [
    each.current ? "*" : "",
    ...[each.name, each.backend ?? "", each.error ?? each.place ?? "", each.key],
  ]);
  const table =
    rows.length === 0
      ? "There are no saved connections; lance-gateway context add saves one.\n"
      : textTable([["", "NAME", "BACKEND", "PLACE", "KEY"], ...rows]);
  return { value: facts, text: table };
});

interface Whereabouts {
  readonly backend?: string;
  readonly place?: string;
  /** Why nothing can use the connection: somebody has edited the file, or another release wrote it. */
  readonly error?: string;
  readonly key: string;
}

function whereTo(context: Context): Whereabouts {
  const key = keyText(context);
  try {
    const options = readServeOptions([layerOf(context, "")]);
    return { backend: options.backend, place: placeOf(options), key };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return { error: error.message, key };
  }
}

function required({ contexts }: Contexts, name: string): string {
  if (Object.hasOwn(contexts, name)) return name;
  throw new UsageError(`there is no context ${name}; lance-gateway context ls lists them`);
}

function keyText({ key }: Context): string {
  if (key === undefined) return "";
  if ("file" in key) return `in ${key.file}`;
  return "variable" in key ? `in $${key.variable}` : "saved";
}
