/** A file of text that tools get wrong, and what becomes of it: its rows as JSON, each exactly, or a refusal that says where. */
export interface TortureFile {
  readonly name: string;
  readonly format: "csv" | "tsv" | "jsonl";
  readonly content: string | Uint8Array;
  readonly flags?: readonly string[];
  /** Types of the columns in Arrow's words, in their order. */
  readonly types?: readonly string[];
  /** Lines of JSON that an export has. */
  readonly rows?: readonly string[];
  readonly refused?: RegExp;
}

const utf16 = (text: string, isBig = false) => {
  const bytes = Buffer.from(`\ufeff${text}`, "utf16le");
  return isBig ? bytes.swap16() : bytes;
};
const bytes = (...parts: readonly (string | Uint8Array | readonly number[])[]) =>
  Buffer.concat(parts.map((part) => Buffer.from(part as string)));
const INT = "Int64";
const TEXT = "Utf8";
const NUMBER = "Float64";

/** A cell whose broken character follows more than one piece of a file. */
const LONG = "x".repeat(300 * 1024);

export const CSV_FILES: readonly TortureFile[] = [
  // Encodings.
  ...(
    [
      ["UTF-8 with a byte order mark", "\ufeffa,b\n1,é\n", []],
      ["UTF-16, little end first", utf16("a,b\n1,é\n"), []],
      ["UTF-16, big end first", utf16("a,b\n1,é\n", true), []],
      ["UTF-16 without a mark", utf16("a,b\n1,é\n").subarray(2), ["--encoding", "utf-16le"]],
      ["latin1", Buffer.from("a,b\n1,é\n", "latin1"), ["--encoding", "latin1"]],
    ] as const
  ).map(([name, content, flags]) => ({
    ...{ name, format: "csv" as const, content, flags },
    ...{ types: [INT, TEXT], rows: ['{"a":1,"b":"é"}'] },
  })),
  {
    ...{ name: "latin1 that claims nothing", format: "csv", content: Buffer.from("a,b\n1,é\n", "latin1") },
    refused: /line 2, column 3 \(byte 6\): the text is not in UTF-8; choose the encoding/,
  },
  {
    ...{ name: "UTF-16 without a mark that claims nothing", format: "csv" },
    ...{
      content: utf16("a,b\n1,2\n").subarray(2),
      refused: /line 1, column 1: the names have null characters/,
    },
  },
  {
    ...{ name: "broken UTF-8 in the middle of a piece", format: "csv" },
    content: bytes("a,b\n1,x\n", `2,${LONG}`, [0xc3, 0x28], "\n3,y\n"),
    refused: /line 3, column 307203 \(byte 307210\)/,
  },
  {
    ...{ name: "UTF-8 that ends within a character", format: "csv", content: bytes("a\nx\n", [0xe2, 0x82]) },
    refused: /line 3, column 1/,
  },
  {
    ...{ name: "characters across the border of a piece", format: "csv" },
    content: `a\n${"€".repeat(200_000)}\n`,
    ...{ types: [TEXT], rows: [`{"a":"${"€".repeat(200_000)}"}`] },
  },
  {
    ...{
      name: "half of a pair in UTF-16",
      format: "csv",
      content: bytes(utf16("a\nx"), [0x3d, 0xd8], [0x0a, 0]),
    },
    refused: /line 2, column 2/,
  },
  {
    ...{ name: "UTF-32", format: "csv", content: bytes([0xff, 0xfe, 0, 0], [0x61, 0, 0, 0]) },
    refused: /line 1, column 1: the text is in UTF-32/,
  },
  {
    ...{ name: "a mark beside another encoding", format: "csv", content: utf16("a\n1\n") },
    ...{ flags: ["--encoding", "latin1"], refused: /line 1, column 1: .*byte order mark of utf-16le/ },
  },
  {
    ...{ name: "replacement characters that are in the file", format: "csv", content: "a\n\ufffd\n" },
    ...{ types: [TEXT], rows: ['{"a":"\ufffd"}'] },
  },
  // Integers.
  {
    ...{ name: "integers around 2^53", format: "csv", content: "a\n9007199254740991\n9007199254740993\n" },
    ...{ types: [INT], rows: ['{"a":9007199254740991}', '{"a":9007199254740993}'] },
  },
  {
    ...{ name: "integers around 2^63", format: "csv" },
    content: "a,b\n9223372036854775807,-9223372036854775808\n9223372036854775808,1\n",
    types: ["Uint64", INT],
    rows: ['{"a":9223372036854775807,"b":-9223372036854775808}', '{"a":9223372036854775808,"b":1}'],
  },
  {
    ...{ name: "an integer beyond 2^53 beside one beyond int64", format: "csv" },
    content: "a\n9007199254740993\n-1\n9223372036854775808\n",
    types: ["Decimal[38e0]"],
    rows: ['{"a":9007199254740993}', '{"a":-1}', '{"a":9223372036854775808}'],
  },
  {
    ...{ name: "hashes of 64 bits", format: "csv", content: "a\n18446744073709551615\n0\n" },
    ...{ types: ["Uint64"], rows: ['{"a":18446744073709551615}', '{"a":0}'] },
  },
  {
    ...{ name: "an integer of 2^64", format: "csv", content: "a\n18446744073709551616\n" },
    ...{ types: ["Decimal[38e0]"], rows: ['{"a":18446744073709551616}'] },
  },
  {
    ...{ name: "an integer of 40 digits", format: "csv", content: `a\n${"9".repeat(40)}\n` },
    ...{ types: [TEXT], rows: [`{"a":"${"9".repeat(40)}"}`] },
  },
  {
    ...{ name: "leading zeros and signs", format: "csv", content: "a,b,c\n007,+5,-0\n1,6,1\n" },
    ...{ types: [TEXT, INT, NUMBER], rows: ['{"a":"007","b":5,"c":-0}', '{"a":"1","b":6,"c":1}'] },
  },
  // Decimals and floating-point numbers.
  {
    ...{
      name: "decimals of high precision",
      format: "csv",
      content: "a\n0.12345678901234567890123\n-1234567.5\n",
    },
    types: ["Decimal[38e+23]"],
    rows: ['{"a":0.12345678901234567890123}', '{"a":-1234567.50000000000000000000000}'],
  },
  {
    ...{ name: "decimals that no type holds", format: "csv", content: `a\n0.${"1".repeat(50)}\n1\n` },
    ...{ types: [TEXT], rows: [`{"a":"0.${"1".repeat(50)}"}`, '{"a":"1"}'] },
  },
  {
    ...{
      name: "an integer beyond 2^53 beside a fraction",
      format: "csv",
      content: "a\n9007199254740993\n0.5\n",
    },
    ...{ types: ["Decimal[38e+1]"], rows: ['{"a":9007199254740993.0}', '{"a":0.5}'] },
  },
  {
    ...{ name: "numbers of 64 bits", format: "csv" },
    content: "a\n0.1\n0.30000000000000004\n0.10000000000000001\n5e-324\n1.7976931348623157e308\n1e22\n",
    types: [NUMBER],
    rows: [0.1, 0.30000000000000004, 0.1, 5e-324, 1.7976931348623157e308, 1e22].map((a) => `{"a":${a}}`),
  },
  {
    ...{ name: "numbers beyond 64 bits", format: "csv", content: "a\n1e400\n1e-400\n2\n" },
    ...{ types: [TEXT], rows: ['{"a":"1e400"}', '{"a":"1e-400"}', '{"a":"2"}'] },
  },
  {
    ...{
      name: "NaN, infinity and a negative zero",
      format: "csv",
      content: "a\n1.5\nNaN\ninf\n-Infinity\n-0.0\n",
    },
    types: [NUMBER],
    rows: ['{"a":1.5}', '{"a":"NaN"}', '{"a":"Infinity"}', '{"a":"-Infinity"}', '{"a":-0}'],
  },
  {
    ...{ name: "a column of the name Nan", format: "csv", content: "a\nNan\nInf\n" },
    ...{ types: [TEXT], rows: ['{"a":"Nan"}', '{"a":"Inf"}'] },
  },
  {
    ...{ name: "NaN beside integers beyond 2^53", format: "csv", content: "a\n9007199254740993\nNaN\n" },
    ...{ types: [TEXT], rows: ['{"a":"9007199254740993"}', '{"a":"NaN"}'] },
  },
  // Times.
  {
    ...{ name: "times with microseconds and a zone", format: "csv" },
    content: "a\n2026-05-04T13:02:01.123456Z\n2026-05-04T13:02:01+02:00\n",
    types: ["Timestamp<MICROSECOND, UTC>"],
    rows: ['{"a":"2026-05-04T13:02:01.123456Z"}', '{"a":"2026-05-04T11:02:01Z"}'],
  },
  {
    ...{
      name: "times of nanoseconds without a zone",
      format: "csv",
      content: "a\n2026-05-04 13:02:01.123456789\n",
    },
    ...{ types: ["Timestamp<NANOSECOND>"], rows: ['{"a":"2026-05-04T13:02:01.123456789"}'] },
  },
  {
    ...{ name: "times with and without a zone", format: "csv" },
    content: "id,a\n1,2026-05-04T13:02:01Z\n2,2026-05-04T13:02:01\n",
    refused: /column "a", line 3: the column has times with a zone, and times or dates without one/,
  },
  {
    ...{
      name: "days beside times with a zone",
      format: "csv",
      content: "a\n2026-05-04\n2026-05-04T13:02:01Z\n",
    },
    refused: /column "a", line 3/,
  },
  {
    ...{ name: "times with and without a zone, as texts", format: "csv", flags: ["--type", "a=string"] },
    content: "a\n2026-05-04T13:02:01Z\n2026-05-04T13:02:01\n",
    ...{ types: [TEXT], rows: ['{"a":"2026-05-04T13:02:01Z"}', '{"a":"2026-05-04T13:02:01"}'] },
  },
  {
    ...{ name: "a leap second, the 30th of February and picoseconds", format: "csv" },
    content: "a,b,c\n2016-12-31T23:59:60Z,2026-02-30,2026-05-04T00:00:00.123456789012\n",
    types: [TEXT, TEXT, TEXT],
    rows: ['{"a":"2016-12-31T23:59:60Z","b":"2026-02-30","c":"2026-05-04T00:00:00.123456789012"}'],
  },
  {
    ...{ name: "a year that nanoseconds do not reach", format: "csv" },
    content: "a\n2026-05-04T00:00:00.123456789\n9999-12-31T00:00:00\n",
    refused: /column "a", line 3: Timestamp<NANOSECOND> cannot hold/,
  },
  {
    ...{ name: "days", format: "csv", content: "a\n2024-02-29\n0001-01-01\n9999-12-31\n" },
    ...{ types: ["Date32<DAY>"], rows: ['{"a":"2024-02-29"}', '{"a":"0001-01-01"}', '{"a":"9999-12-31"}'] },
  },
  // Quotes, empties and lines.
  {
    ...{ name: "quotes without anything beside nothing", format: "csv", content: 'a,b,n\nx,"",1\n"",,""\n' },
    ...{ types: [TEXT, TEXT, INT], rows: ['{"a":"x","b":"","n":1}', '{"a":"","b":null,"n":null}'] },
  },
  {
    ...{ name: "quotes, separators and spaces in cells", format: "csv" },
    content: 'a,b\n"say ""hi"", ok"," x "\n y ,5" pipe\n',
    types: [TEXT, TEXT],
    rows: ['{"a":"say \\"hi\\", ok","b":" x "}', '{"a":" y ","b":"5\\" pipe"}'],
  },
  {
    ...{ name: "lines within cells", format: "csv", content: 'a,b\n"1\r\n2\n3\r",x\ny,z\n' },
    ...{ types: [TEXT, TEXT], rows: ['{"a":"1\\r\\n2\\n3\\r","b":"x"}', '{"a":"y","b":"z"}'] },
  },
  {
    ...{ name: "a refusal after lines within cells", format: "csv", content: 'a,b\n"1\n2",x\ny,z,w\n' },
    refused: /line 4, column 5: the row has 3 cells, and the first line names 2/,
  },
  {
    ...{ name: "a quote that is not closed", format: "csv", content: 'a,b\n1,"x\n2,y\n' },
    refused: /line 2, column 3: the quote at the beginning of this cell is not closed/,
  },
  {
    ...{ name: "a cell that goes on after its quote", format: "csv", content: 'a,b\n1,"x"y\n' },
    refused: /line 2, column 6: a quoted cell goes on after its quote/,
  },
  {
    ...{ name: "a quote after a space", format: "csv", content: 'a,b\n1, "x,y"\n' },
    refused: /line 2, column 7: the row has 3 cells/,
  },
  {
    ...{
      name: "rows with too few cells, and with empty ones beyond",
      format: "csv",
      content: "a,b\n1\n2,x,,\n",
    },
    ...{ types: [INT, TEXT], rows: ['{"a":1,"b":null}', '{"a":2,"b":"x"}'] },
  },
  ...(["\n", "\r\n", "\r"] as const).map(
    (end): TortureFile => ({
      ...{ name: `lines that end in ${JSON.stringify(end)}`, format: "csv" },
      content: ["a,b", "1,x", "", "2,y"].join(end),
      ...{ types: [INT, TEXT], rows: ['{"a":1,"b":"x"}', '{"a":2,"b":"y"}'] },
    }),
  ),
  {
    ...{ name: "lines that end in both", format: "csv", content: "a,b\r\n1,x\n2,y\r\n" },
    ...{ types: [INT, TEXT], rows: ['{"a":1,"b":"x"}', '{"a":2,"b":"y"}'] },
  },
  {
    ...{ name: "a carriage return within a cell", format: "csv", content: "a,b\n1,x\ry\n" },
    refused: /line 2, column 4: a carriage return alone ends no line here/,
  },
  {
    ...{ name: "null characters in cells", format: "csv", content: "a,b\n1,x\0y\n" },
    ...{ types: [INT, TEXT], rows: ['{"a":1,"b":"x\\u0000y"}'] },
  },
  {
    ...{ name: "a long line", format: "csv", content: `a,b\n1,${"z".repeat(3_000_000)}\n` },
    ...{ types: [INT, TEXT], rows: [`{"a":1,"b":"${"z".repeat(3_000_000)}"}`] },
  },
  {
    ...{ name: "names that occur twice, and none", format: "csv", content: "a,a,,a_2\n1,2,3,4\n" },
    ...{ types: [INT, INT, INT, INT], rows: ['{"a":1,"a_3":2,"column_3":3,"a_2":4}'] },
  },
  {
    ...{ name: "an empty file", format: "csv", content: "" },
    refused: /line 1, column 1: the file is empty/,
  },
  {
    ...{ name: "times with and without a zone within lists and objects", format: "jsonl" },
    content:
      '{"a":["2026-05-04T13:02:01Z","2026-05-04"],"b":{"c":"2026-05-04T13:02:01+02:00"}}\n{"b":{"c":"2026-05-04"}}\n',
    types: ["List<Utf8>", "Struct<{c:Utf8}>"],
    rows: [
      '{"a":["2026-05-04T13:02:01Z","2026-05-04"],"b":{"c":"2026-05-04T13:02:01+02:00"}}',
      '{"a":null,"b":{"c":"2026-05-04"}}',
    ],
  },
  {
    ...{ name: "texts that are days, words for numbers and digits", format: "jsonl" },
    content: '{"a":"2026-05-04","b":["2026-05-04","NaN"]}\n{"a":"NaN"}\n{"a":"1","b":["1"]}\n',
    types: [TEXT, "List<Utf8>"],
    rows: ['{"a":"2026-05-04","b":["2026-05-04","NaN"]}', '{"a":"NaN","b":null}', '{"a":"1","b":["1"]}'],
  },
  {
    ...{ name: "words for numbers within lists", format: "jsonl" },
    content: '{"a":["inf"],"b":["inf",1]}\n',
    types: ["List<Utf8>", "FixedSizeList[2]<Float32>"],
    rows: ['{"a":["inf"],"b":["Infinity",1]}'],
  },
  {
    ...{ name: "vectors that 32 bits hold, and that they do not", format: "csv" },
    content: 'a,b,c\n"[0.1, 2]","[0.123456789012, 1]","[1, 2]"\n"[3, NaN]","[1, 2]","[3]"\n',
    types: [TEXT, "FixedSizeList[2]<Float64>", TEXT],
    rows: ['{"a":"[0.1, 2]","b":[0.123456789012,1],"c":"[1, 2]"}', '{"a":"[3, NaN]","b":[1,2],"c":"[3]"}'],
  },
  {
    ...{
      name: "a number with more digits than its chosen type",
      format: "csv",
      content: "a\n0.5\n0.1234567891\n",
    },
    ...{
      flags: ["--type", "a=float32"],
      refused: /column "a", line 3: Float32 cannot hold 0\.1234567891 exactly/,
    },
  },
  {
    ...{ name: "numbers that may be rounded", format: "csv", content: "a\n0.5\n0.1234567891\n" },
    ...{
      flags: ["--type", "a=float32", "--round"],
      types: ["Float32"],
      rows: ['{"a":0.5}', '{"a":0.12345679}'],
    },
  },
  {
    ...{ name: "TSV with commas and quotes", format: "tsv", content: 'a\tb\n1\tx,y\n2\t"t\tt"\n' },
    ...{ types: [INT, TEXT], rows: ['{"a":1,"b":"x,y"}', '{"a":2,"b":"t\\tt"}'] },
  },
];

export const JSON_FILES: readonly TortureFile[] = [
  {
    ...{ name: "UTF-16", format: "jsonl", content: utf16('{"a":"é"}\n') },
    ...{ types: [TEXT], rows: ['{"a":"é"}'] },
  },
  {
    ...{ name: "big numbers", format: "jsonl" },
    content: '{"a":9007199254740993,"b":18446744073709551615,"c":1234567890123456789012345.25}\n',
    types: [INT, "Uint64", "Decimal[38e+2]"],
    rows: ['{"a":9007199254740993,"b":18446744073709551615,"c":1234567890123456789012345.25}'],
  },
  {
    ...{ name: "big numbers within lists and objects", format: "jsonl" },
    content: '{"a":[18446744073709551615,1,2],"b":{"c":0.12345678901234567891}}\n{"a":[1],"b":null}\n',
    types: ["List<Uint64>", "Struct<{c:Decimal[38e+20]}>"],
    rows: ['{"a":[18446744073709551615,1,2],"b":{"c":0.12345678901234567891}}', '{"a":[1],"b":null}'],
  },
  {
    ...{ name: "a negative zero and an exponent", format: "jsonl", content: '{"a":-0}\n{"a":1.5e3}\n' },
    ...{ types: [NUMBER], rows: ['{"a":-0}', '{"a":1500}'] },
  },
  {
    ...{ name: "NaN without quotes", format: "jsonl", content: '{"a":1}\n{"a":NaN}\n' },
    refused: /line 2, column 6: this is not JSON/,
  },
  {
    ...{
      name: "NaN in quotes beside numbers",
      format: "jsonl",
      content: '{"a":1.5}\n{"a":"NaN"}\n{"a":"-Infinity"}\n',
    },
    ...{ types: [NUMBER], rows: ['{"a":1.5}', '{"a":"NaN"}', '{"a":"-Infinity"}'] },
  },
  {
    ...{ name: "a member twice", format: "jsonl", content: '{"a":1}\n{"a":1,"b":{"c":1,"c":2}}\n' },
    refused: /line 2, column 19: the member "c" occurs twice/,
  },
  {
    ...{
      name: "half of a surrogate pair",
      format: "jsonl",
      content: '{"a":"\\ud83d\\ude00"}\n{"a":"\\ud83d"}\n',
    },
    refused: /line 2, column 6: this text has half of a surrogate pair/,
  },
  {
    ...{
      name: "escapes and null characters",
      format: "jsonl",
      content: '{"a":"\\ud83d\\ude00\\u0000\\n\\"\\\\"}\n',
    },
    ...{ types: [TEXT], rows: ['{"a":"😀\\u0000\\n\\"\\\\"}'] },
  },
  {
    ...{ name: "values of several kinds", format: "jsonl" },
    content: '{"a":12345678901234567890}\n{"a":"x"}\n{"a":[1.10,{"b":null}]}\n{"a":true}\n',
    types: [TEXT],
    rows: ['{"a":"12345678901234567890"}', '{"a":"x"}', '{"a":"[1.10,{\\"b\\":null}]"}', '{"a":"true"}'],
  },
  {
    ...{ name: "a number beside the text of a number", format: "jsonl", content: '{"a":1}\n{"a":"1"}\n' },
    refused: /column "a", line 2: the column has texts that are JSON beside values of other kinds/,
  },
  {
    ...{
      name: "missing members, nulls and blank lines",
      format: "jsonl",
      content: '{"a":1}\n\n  \n{"b":null}\n{"b":"x"}\n',
    },
    types: [INT, TEXT],
    rows: ['{"a":1,"b":null}', '{"a":null,"b":null}', '{"a":null,"b":"x"}'],
  },
  {
    ...{ name: "empty objects and lists", format: "jsonl", content: '{"a":{},"b":[],"c":{"d":{}}}\n' },
    ...{ types: [TEXT, "List<Utf8>", "Struct<{d:Utf8}>"], rows: ['{"a":"{}","b":[],"c":{"d":"{}"}}'] },
  },
  {
    ...{ name: "times with and without a zone", format: "jsonl" },
    content: '{"a":"2026-05-04T13:02:01Z"}\n{"a":"2026-05-04T13:02:01"}\n',
    refused: /column "a", line 2: the column has times with a zone/,
  },
  {
    ...{ name: "vectors that 32 bits hold, and that they do not", format: "jsonl" },
    content: '{"a":[0.1,-0.006929283495992422],"b":[0.1234567891,1]}\n',
    types: ["FixedSizeList[2]<Float32>", "FixedSizeList[2]<Float64>"],
    rows: ['{"a":[0.1,-0.0069292835],"b":[0.1234567891,1]}'],
  },
  {
    ...{ name: "two values on a line", format: "jsonl", content: '{"a":1}{"a":2}\n' },
    refused: /line 1, column 8: the line goes on after its value/,
  },
  {
    ...{ name: "a value that is cut off", format: "jsonl", content: '{"a":1}\n{"a":"x' },
    refused: /line 2, column 6: a quote is missing/,
  },
  {
    ...{ name: "levels without end", format: "jsonl", content: `{"a":${"[".repeat(5000)}` },
    refused: /line 1, column 105: more than 100 levels/,
  },
  {
    ...{ name: "lines that end in carriage returns", format: "jsonl", content: '{"a":1}\r{"a":2}\r' },
    ...{ types: [INT], rows: ['{"a":1}', '{"a":2}'] },
  },
  {
    ...{ name: "a name that objects have", format: "jsonl", content: '{"__proto__":1,"constructor":"x"}\n' },
    ...{ types: [INT, TEXT], rows: ['{"__proto__":1,"constructor":"x"}'] },
  },
];
