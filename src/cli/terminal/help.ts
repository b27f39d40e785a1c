import { type Command, Help } from "commander";
import { flagUsage, type OptionSpec } from "../../config/option-spec.ts";
import type { OptionGroup } from "../commands/command.ts";
import { COMMANDS, type CommandEntry, type CommandGroup } from "../commands/table.ts";

/** Heading of a command's own options, of which its short help leaves out only those that few users need. */
const OWN = "Options";

/** Heading of the common options of several groups. */
const SHARED = "Common options";

/** Commands that the short help of the program describes; it names the others. */
const COMMON: readonly string[] = ["serve", "import", "query", "ls", "describe", "context"];

/** Formats the short help of a command. */
type FormatHelp = (command: Command, helper: Help) => string;

/**
 * Creates the format of `--help`: what a command does, examples and its common options, on a screen. `--help-all` prints
 * everything, in the library's own format.
 *
 * @param groupsOf returns the options of a command that is loaded
 */
export function createHelpFormat(
  groupsOf: (command: Command) => readonly OptionGroup[],
  isLong: () => boolean,
): FormatHelp {
  return (command, helper) => {
    if (isLong()) return Help.prototype.formatHelp.call(helper, command, helper);
    const groups = groupsOf(command);
    const sections: readonly (readonly [heading: string, items: readonly Item[]])[] = [
      ["Examples", examplesOf(nameOf(command)).map((line) => [line, ""])],
      ...(command.parent === null ? programItems() : subcommandItems(command)),
      ...optionItems(groups, helpItems(command, groups)),
    ];
    const width = Math.max(...sections.flatMap(([, items]) => items.map(termWidth)));
    const texts = sections.flatMap(([heading, items]) =>
      items.length === 0
        ? []
        : [
            `${heading}:\n${items.map(([term, text]) => helper.formatItem(term, width, text, helper)).join("\n")}\n`,
          ],
    );
    const summary = helper.boxWrap(sentence(helper.commandDescription(command)), helper.helpWidth ?? 80);
    return [`Usage: ${helper.commandUsage(command)}\n`, `${summary}\n`, ...texts].join("\n");
  };
}

/** A term and what it means; an example has no meaning, and does not decide about the width of the terms. */
type Item = readonly [term: string, meaning: string];

function termWidth([term, meaning]: Item): number {
  return meaning === "" ? 0 : term.length;
}

/** Returns the name of a command below the program: `versions ls`. */
function nameOf(command: Command): string {
  const { parent } = command;
  return parent === null ? "" : `${nameOf(parent)} ${command.name()}`.trim();
}

/** Returns the command lines of a command; a group has those of its commands, and the program has some. */
function examplesOf(name: string): string[] {
  if (name === "") return ["serve", "import", "query"].flatMap((each) => examplesOf(each).slice(0, 1));
  const own = EXAMPLES[name]?.map((line) => `${name} ${line}`);
  const inner = Object.keys(EXAMPLES).filter((each) => each.startsWith(`${name} `));
  const lines = own ?? inner.map((each) => `${each} ${EXAMPLES[each]?.[0]}`);
  return lines.map((line) => `lance-gateway ${line}`.trim());
}

function programItems(): [string, Item[]][] {
  const entries = Object.entries(COMMANDS);
  const common = COMMON.map((name): Item => [name, sentence(summaryOf(name))]);
  const others = Map.groupBy(
    entries.filter(([name]) => !COMMON.includes(name)),
    ([, { group }]) => group,
  );
  return [
    ["Common commands", common],
    [
      "Other commands",
      [
        ...[...others].map(([group, members]): Item => [group, members.map(([name]) => name).join(", ")]),
        ["Shell", "completion, help"],
      ],
    ],
  ];
}

function summaryOf(name: string): string {
  return (COMMANDS[name] as CommandEntry).summary;
}

function subcommandItems(command: Command): [string, Item[]][] {
  const entry = COMMANDS[command.name()];
  if (entry === undefined || !("commands" in entry)) return [];
  const items = Object.entries((entry as CommandGroup).commands).map(
    ([name, { summary }]): Item => [name, sentence(summary)],
  );
  return [["Commands", items]];
}

/** Returns a command's own options with those of the help, and one list of all others: each list has a heading, and takes lines. */
function optionItems(groups: readonly OptionGroup[], help: readonly Item[]): [string, Item[]][] {
  const own = groups.filter(({ heading }) => heading === OWN).flatMap(itemsOf);
  const others = groups.filter((group) => group.heading !== OWN && itemsOf(group).length > 0);
  const shared = others.flatMap(itemsOf);
  const heading = others.length === 1 ? (others[0]?.heading ?? SHARED) : SHARED;
  if (own.length === 0 && shared.length > 0) return [[heading, [...shared, ...help]]];
  return [
    [OWN, [...own, ...help]],
    [heading, shared],
  ];
}

/** Returns the items of a group: a command's own options without those that few users need, and of others those that most need. */
function itemsOf({ heading, options }: OptionGroup): Item[] {
  const specs = Object.values<OptionSpec>(options).filter(({ common }) =>
    heading === OWN ? common !== false : common,
  );
  return specs.map((spec) => [flagUsage(spec), briefly(spec)]);
}

/** Sentences that the short help keeps: the first one, and the default. */
const SENTENCES = /^.*?\.(?=\s|$)|\sDefault: .*?\.(?=\s|$)/gs;

function briefly({ help, common, value, fallback }: OptionSpec): string {
  const text = common || (help.match(SENTENCES)?.join("") ?? help);
  return value === undefined || fallback === undefined ? text : `${text} (default: ${fallback})`;
}

function helpItems(command: Command, groups: readonly OptionGroup[]): Item[] {
  const count = groups.reduce((sum, { options }) => sum + Object.keys(options).length, 0);
  const all =
    command.parent === null
      ? "Describe every command."
      : `List all ${count} options, with their environment variables.`;
  return [
    ...(command.parent === null ? [["-v, --version", "Print the version."] satisfies Item] : []),
    [
      "-h, --help",
      command.parent === null ? "Print this help; after a command, its own." : "Print this help.",
    ],
    ...(command.parent === null || count > 0 ? [["--help-all", all] satisfies Item] : []),
  ];
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;
}

/** Arguments of the examples in the help, by the names of their commands. A test parses all of them. */
export const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  serve: [
    "--root ./lance-data",
    "--root s3://bucket/prefix --auth api-key --api-keys-file keys.json",
    "--uri https://catalog.example.com/lance",
  ],
  ready: ["--port 8080"],
  mcp: ["--root ./lance-data", "--uri https://catalog.example.com/lance --mcp-writes"],
  config: ["check gateway.yaml", "print gateway.yaml"],
  ls: ["team --uri http://localhost:2333", "--recursive --root ./lance-data"],
  describe: ["team/people", "team/people --arrow-types"],
  create: ["team --property owner=ada"],
  drop: ["team/people", "team --namespace --cascade --yes"],
  rename: ["team/people team/persons"],
  count: ['team/people --filter "age > 30"'],
  query: [
    'team/people --filter "age > 30" --limit 10',
    'team/people --order-by "age desc" --format csv',
    "team/people --vector [0.5,1] --limit 5 --expanded",
  ],
  sql: [
    '"SELECT name, age FROM team.people WHERE age > 30 ORDER BY age"',
    '"SELECT count(*) FROM people" --root ./lance-data --format csv',
    '"SELECT * FROM team.people" --output people.parquet',
    "--uri http://localhost:2333",
  ],
  import: [
    "people.parquet team/people",
    "- team/events --format jsonl --mode append",
    "prices.csv prices --type price=decimal(20,4)",
    "'/data/raw/*.parquet' team/people --engine ray --root ./lance-data",
  ],
  export: ["team/people people.arrow", 'team/people - --format csv --filter "age > 30"'],
  stats: ["team/people"],
  prewarm: ["team/people", "team/people --column vector"],
  "versions ls": ["team/people --limit 5"],
  "versions describe": ["team/people 3"],
  restore: ["team/people 3"],
  "tags ls": ["team/people"],
  "tags create": ["team/people before-cleanup 3"],
  "tags update": ["team/people before-cleanup 4"],
  "tags delete": ["team/people before-cleanup"],
  "branches ls": ["team/people"],
  "branches create": ["team/people trial --version 3"],
  "branches delete": ["team/people trial"],
  "index ls": ["team/people"],
  "index create": ["team/people vector --type IVF_PQ --wait", "team/people name --type FTS"],
  "index wait": ["team/people --timeout 5m"],
  "index stats": ["team/people vector_idx"],
  "index drop": ["team/people vector_idx"],
  "jobs ls": ["team/people"],
  "jobs describe": ["JOB"],
  "jobs wait": ["JOB --timeout 5m"],
  "jobs cancel": ["JOB"],
  "context add": [
    "prod --uri https://lance.example.com --key-file ~/.lance-key",
    "local --root ./lance-data",
  ],
  "context use": ["prod"],
  "context ls": [""],
  "context rm": ["prod"],
  bench: ["--uri http://localhost:2333 --connections 16"],
  keys: ["create --file keys.json --name ann --role reader", "list --file keys.json"],
  policy: ["check ./policies", "print-roles"],
  gc: ["--root ./lance-data", "--root ./lance-data --delete --older-than 7d"],
  optimize: ["team/people --root ./lance-data", "--root ./lance-data --dry-run"],
  migrate: ["--root ./lance-data --dry-run"],
};
