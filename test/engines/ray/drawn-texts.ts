import * as arrow from "apache-arrow";
import { type DataType, Field, FixedSizeBinary, List, Schema, Struct } from "apache-arrow";
import { typeOfName } from "../../../src/client/text/type-names.ts";
import type { Random } from "../../support/random.ts";

/** A text for a table. */
export interface DrawnText {
  readonly format: "csv" | "tsv" | "jsonl";
  readonly schema: Schema;
  readonly content: string | Uint8Array;
  /** Whether it has nothing but plain values in plain forms, which no reader may refuse. */
  readonly isPlain: boolean;
}

/** Plain values of a type. */
interface Kind {
  readonly type: DataType;
  /** Whether JSON has them without quotes. */
  readonly isBare: boolean;
  readonly draw: (random: Random) => string;
}

const kind = (type: string, isBare: boolean, draw: Kind["draw"]): Kind => ({
  ...{ type: typeOfName(arrow, type), isBare, draw },
});
const integer = (type: string, bits: number, isSigned: boolean): Kind =>
  kind(type, true, (random) => {
    const value = BigInt(random.below(2 ** 32)) * BigInt(random.below(2 ** 32)) + BigInt(random.below(3));
    return String(isSigned ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value));
  });
const digits = (random: Random, count: number) =>
  Array.from({ length: count }, () => random.below(10)).join("");
const two = (value: number) => String(value).padStart(2, "0");
const day = (random: Random) =>
  `${random.pick([1678, 1900, 1970, 2024, 2261])}-${two(1 + random.below(12))}-${two(1 + random.below(28))}`;
const clock = (random: Random, places: number) => {
  const shown = random.below(places + 1);
  const time = `${two(random.below(24))}:${two(random.below(60))}:${two(random.below(60))}`;
  return shown === 0 ? time : `${time}.${digits(random, shown)}`;
};
const WORDS = [
  "",
  "a",
  "NA",
  "null",
  "NaN",
  "1",
  "007",
  "true",
  "é",
  "😀",
  " x ",
  "a,b;c|d\te",
  'say "hi"',
  "-",
  "#N/A",
  "\u0000",
  "[1]",
];
const number = (random: Random) => {
  const values = [
    random.below(1000),
    random.below(1000) / 8,
    random.below(2 ** 32) / 7,
    -random.below(9) / 10,
    1e22,
    5e-324,
  ];
  return String(random.pick([...values, 1.7976931348623157e308, 0]));
};
/** Returns plain lists, which have no word for what is not finite. */
const list = (random: Random, length: number, draw: Kind["draw"]) =>
  `[${Array.from({ length }, () => draw(random)).join(",")}]`;
const eighth = (random: Random) => String(random.below(1000) / 8 - 9);
const quoted = (random: Random) => JSON.stringify(random.pick(WORDS));

/** All types that a worker reads, and their plain values. */
const KINDS: readonly Kind[] = [
  ...[8, 16, 32, 64].flatMap((bits) => [
    integer(`int${bits}`, bits, true),
    integer(`uint${bits}`, bits, false),
  ]),
  kind("float64", true, number),
  kind("float32", true, (random) => random.pick([eighth(random), "0.1", "3.4028235e38", "1e-45"])),
  kind("float16", true, (random) => random.pick([String(random.below(100) / 4), "65504", "0.1"])),
  kind(
    "decimal(20,4)",
    true,
    (random) => `${random.pick(["", "-"])}${1 + random.below(2 ** 32)}.${digits(random, 4)}`,
  ),
  kind("decimal(38,0)", true, (random) => `1${digits(random, random.below(38))}`),
  kind("decimal(38,38)", true, (random) => `0.${digits(random, 38)}`),
  kind("decimal(60,10)", true, (random) => `1${digits(random, 40)}.${digits(random, 10)}`),
  kind("bool", true, (random) => random.pick(["true", "false"])),
  kind("string", false, (random) => random.pick(WORDS)),
  kind("large_string", false, (random) => random.pick(WORDS)),
  kind("binary", false, (random) => Buffer.from(digits(random, random.below(9))).toString("base64")),
  kind("large_binary", false, (random) => Buffer.from(digits(random, random.below(9))).toString("base64")),
  kind("date32", false, day),
  kind("date64", false, day),
  ...(["s", "ms", "us", "ns"] as const).flatMap((unit, at) => [
    kind(
      `timestamp(${unit})`,
      false,
      (random) => `${day(random)}${random.pick(["T", " "])}${clock(random, at * 3)}`,
    ),
    kind(
      `timestamp(${unit},UTC)`,
      false,
      (random) => `${day(random)}T${clock(random, at * 3)}${random.pick(["Z", "+02:00", "-0930"])}`,
    ),
    kind(`time(${unit})`, false, (random) => clock(random, at * 3)),
    kind(`duration(${unit})`, true, (random) => String(random.below(2 ** 32) - 2 ** 31)),
  ]),
  kind("timestamp(us,Europe/Berlin)", false, (random) => `${day(random)}T${clock(random, 6)}Z`),
  kind("vector(3)", true, (random) => list(random, 3, eighth)),
  kind("vector(2,float64)", true, (random) => list(random, 2, (own) => String(own.below(2 ** 32) / 7))),
  kind("list(string)", true, (random) => list(random, random.below(4), quoted)),
  kind("list(int64)", true, (random) => list(random, random.below(4), (own) => String(own.below(2 ** 32)))),
  kind("list(date32)", true, (random) => list(random, random.below(4), (own) => JSON.stringify(day(own)))),
  {
    type: new List(new Field("item", typeOfName(arrow, "decimal(20,4)"), true)),
    ...{ isBare: true, draw: (random) => list(random, random.below(4), (own) => `1.${digits(own, 4)}`) },
  },
  {
    type: new Struct([new Field("x", new arrow.Float64(), true), new Field("name", new arrow.Utf8(), true)]),
    ...{ isBare: true, draw: (random) => `{"x":${number(random)},"name":${quoted(random)}}` },
  },
  {
    type: new FixedSizeBinary(2),
    isBare: false,
    draw: (random) => Buffer.from(digits(random, 2)).toString("base64"),
  },
];

/** Texts that some readers take for other values. */
const ODD = [
  ...[
    "",
    " ",
    "-0",
    "+5",
    "007",
    "1.",
    ".5",
    "1e3",
    "1E+2",
    "0x1F",
    "1_000",
    "1,000",
    "１",
    "1 ",
    " 1",
    "--1",
    "1e400",
    "1e-400",
  ],
  ...[
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
  ],
  ...[
    "128",
    "-129",
    "255",
    "256",
    "65536",
    "2147483648",
    "9007199254740993",
    "0.1234567891",
    "0.30000000000000004",
  ],
  ...[
    "0.10000000000000001",
    "0.12345678901234567891",
    "1e22",
    "-0.0",
    "0.0000",
    "65520",
    "1e-8",
    "99999999999999999999.99999",
  ],
  // pyarrow keeps the last bits of decimals that are too long, and rounds the half of a digit to the even one.
  ...[
    "340282366920938463463374607431768211457",
    "680564733841876926926749214863536422912",
    `0.${"9".repeat(38)}0`,
    "9".repeat(39),
    `0.1${"0".repeat(100)}`,
    "1.50000",
    "256.2",
    "256.3",
    "2097152.2",
    "2097152.3",
    "1125899906842624.20",
    "1125899906842624.2",
  ],
  ...[
    "nan",
    "NaN",
    "-NaN",
    "inf",
    "-Inf",
    "Infinity",
    "+inf",
    "null",
    "NULL",
    "None",
    "NA",
    "true",
    "TRUE",
    "True",
    "yes",
    "1",
    "0",
  ],
  ...[
    "2026-02-30",
    "2026-05-04",
    "0000-01-01",
    "0001-01-01",
    "9999-12-31",
    "+12026-01-01",
    "04.05.2026",
    "2026-5-4",
  ],
  ...[
    "2026-05-04T13:02",
    "2026-05-04T13:02:01",
    "2026-05-04 13:02:01Z",
    "2026-05-04T13:02:01.123456789Z",
    "2026-05-04T24:00:00",
  ],
  ...[
    "2016-12-31T23:59:60Z",
    "2026-05-04T13:02:01+25:00",
    "2026-05-04T13:02:01+02",
    "2026-05-04T13:02:01.1000000000",
    "2026-05-04T13",
  ],
  ...[
    "1677-09-21T00:12:43.145224193",
    "2262-04-11T23:47:16.854775808",
    "13:02",
    "24:00:00",
    "13:02:01.123456789",
    "23:59:60",
  ],
  ...[
    "QQ==",
    "QQ=",
    "QR==",
    "QQ",
    "Q Q=",
    "MTI=",
    "_-8=",
    "é",
    "\ufeff",
    "\u2028",
    "a\nb",
    "a\r\nb",
    'x"y',
    '"',
    "\ud83d\ude00",
  ],
  ...[
    "[1,2,3]",
    "[1,2]",
    "[1,2,]",
    "[]",
    "[null,1,2]",
    "[NaN,1,2]",
    '["NaN",1,2]',
    '["a"]',
    "[0.1234567891,1,2]",
    "[[1]]",
    "[1] x",
  ],
  ...[
    "{}",
    '{"x":1}',
    '{"x":1,"x":2}',
    '{"y":1}',
    '{"x":"1"}',
    '{"name":"\\ud83d"}',
    '{"x":1,"name":null}',
    "{x:1}",
    "1e99999999999999999999",
  ],
];

/** Returns all odd values in a column of each kind: a text of CSV, and of JSON with and without quotes, for each of them. */
export function oddTexts(): DrawnText[] {
  return KINDS.flatMap(({ type }) => {
    const schema = new Schema([new Field("c0", type, true)]);
    return ODD.flatMap((text) =>
      [
        ["csv", `c0\n"${text.replaceAll('"', '""')}"\n`] as const,
        ...[text, JSON.stringify(text)].map((value) => ["jsonl", `{"c0":${value}}\n`] as const),
      ].map(([format, content]) => ({ format, schema, content, isPlain: false })),
    );
  });
}

/** Draws a text whose columns have types in turn. Every other one has something odd. */
export function drawText(random: Random, turn: number): DrawnText {
  const format = (["csv", "jsonl", "tsv", "jsonl"] as const)[turn % 4] as DrawnText["format"];
  const columns = Array.from({ length: 1 + random.below(3) }, (_, at) => ({
    name: `c${at}`,
    kind: KINDS[(turn * 3 + at) % KINDS.length] as Kind,
  }));
  const schema = new Schema(columns.map(({ name, kind: { type } }) => new Field(name, type, true)));
  const isPlain = turn % 8 < 4;
  const oddity = isPlain || random.below(2) === 0 ? "" : random.pick(ODDITIES);
  const value = ({ isBare, draw }: Kind) => {
    if (random.below(6) === 0) return undefined;
    const isOdd = !isPlain && oddity === "" && random.below(4) === 0;
    return { text: isOdd ? random.pick(ODD) : draw(random), isBare: isOdd ? random.below(2) === 0 : isBare };
  };
  const rows = Array.from({ length: 1 + random.below(4) }, () => columns.map((column) => value(column.kind)));
  const lines =
    format === "jsonl" ? jsonLines(random, columns, rows) : csvLines(random, format, columns, rows);
  return { format, schema, content: altered(random, lines, oddity), isPlain };
}

type Value = { readonly text: string; readonly isBare: boolean } | undefined;
type Named = { readonly name: string };

function jsonLines(random: Random, columns: readonly Named[], rows: readonly (readonly Value[])[]): string[] {
  return rows.map((row) => {
    const members = row.flatMap((value, at) => {
      const name = JSON.stringify(columns[at]?.name);
      if (value === undefined) return random.below(2) === 0 ? [] : [`${name}: null`];
      return [`${name}:${value.isBare ? value.text : JSON.stringify(value.text)}`];
    });
    return `{${members.join(", ")}}`;
  });
}

function csvLines(
  random: Random,
  format: "csv" | "tsv",
  columns: readonly Named[],
  rows: readonly (readonly Value[])[],
): string[] {
  const separator =
    format === "tsv" ? "\t" : columns.length === 1 ? "," : random.pick([",", ",", ";", "|", "\t"]);
  const isQuoted = random.below(3) === 0;
  const cell = (value: Value) => {
    if (value === undefined) return "";
    const needsQuotes = isQuoted || value.text === "" || /[",;|\t\r\n]/.test(value.text);
    return needsQuotes ? `"${value.text.replaceAll('"', '""')}"` : value.text;
  };
  const names = columns.map(({ name }) => (isQuoted ? `"${name}"` : name));
  return [names, ...rows.map((row) => row.map(cell))].map((cells) => cells.join(separator));
}

/** Changes of a text as a whole. */
const ODDITIES = [
  ...[
    "returns",
    "feeds",
    "both",
    "mark",
    "marks",
    "utf16",
    "latin1",
    "blank",
    "spaces",
    "cut",
    "tail",
    "twice",
    "quote",
  ],
  ...[
    "cells",
    "fewer",
    "names",
    "no names",
    "empty names",
    "unknown",
    "joined",
    "spread",
    "null byte",
    "no end",
  ],
] as const;

function altered(random: Random, lines: readonly string[], oddity: string): string | Uint8Array {
  const [first = "", ...others] = lines;
  const at = random.below(lines.length);
  const changed = (change: (line: string) => string) =>
    lines.map((line, each) => (each === at ? change(line) : line));
  const text = (own: readonly string[] = lines, end = "\n") => own.map((line) => line + end).join("");
  switch (oddity) {
    case "returns":
      return text(lines, "\r");
    case "feeds":
      return text(lines, "\r\n");
    case "both":
      return lines.map((line) => line + random.pick(["\n", "\r\n", "\r"])).join("");
    case "mark":
      return `\ufeff${text()}`;
    case "marks":
      return `\ufeff\ufeff${text()}`;
    case "utf16":
      return Buffer.from(`${random.pick(["", "\ufeff"])}${text()}`, "utf16le");
    case "latin1":
      return Buffer.from(text(changed((line) => `${line}é`)), "latin1");
    case "blank":
      return text(changed((line) => random.pick([`\n${line}`, `${line}\n`, `\r\n${line}`, `${line}\n\n`])));
    case "spaces":
      return text(
        changed((line) =>
          random.pick([` ${line}`, `${line} `, `${line}\n \t`, `\u00a0${line}`, `\u001c\n${line}`]),
        ),
      );
    case "cut":
      return text().slice(0, random.below(text().length));
    case "tail":
      return text(changed((line) => `${line}${random.pick(["x", "{}", "#", ",", '"', "]", "\0"])}`));
    case "twice":
      return text(changed((line) => line.replace(/"c0": ?([^,}]*)/, '"c0":$1,"c0":$1').replace(/c1/, "c0")));
    case "quote":
      return text(
        changed((line) =>
          line.replace(/[,;|\t]/, random.pick([`",`, `,"`, `"",`, ` "x" ,`, `"x"y,`, `x"y"z,`])),
        ),
      );
    case "cells":
      return text(changed((line) => `${line},${random.pick(["", "x", '""'])}`));
    case "fewer":
      return text(changed((line) => line.slice(0, Math.max(0, line.lastIndexOf(",")))));
    case "names":
      return text([
        first.replace("c0", random.pick([" c0", "c0 ", "C0", "\u00a0c0", '"c0 "', "c0\ufeff"])),
        ...others,
      ]);
    case "no names":
      return text(others);
    case "empty names":
      return text([first.replace(/c\d/, ""), ...others]);
    case "unknown":
      return text([first.replace("c0", "other"), ...others]);
    case "joined":
      return `${lines.join("")}\n`;
    case "spread":
      return text(lines.map((line) => line.replace(/[:,]/, random.pick([":\n", ",\n", ",\r", ":\r"]))));
    case "null byte":
      return text(changed((line) => line.replace(/.$/, "\0")));
    case "no end":
      return lines.join("\n");
    default:
      return text();
  }
}
