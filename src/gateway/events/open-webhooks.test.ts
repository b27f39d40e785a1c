import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, it, onTestFinished, type TestContext, vi } from "vitest";
import { eventOf, SECRET, startReceiver } from "../../../test/fixtures/events.ts";
import { sourcesOf } from "../../../test/support/command-line.ts";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { readConfiguration } from "../../config/configuration.ts";
import { UsageError } from "../../config/option-spec.ts";
import { parseWebhook } from "../../config/options/events.ts";
import { readServeOptions } from "../../config/serve-options.ts";
import { createEventTallies } from "../../observability/metrics/background-tallies.ts";
import { openLiveWebhooks, openWebhooks } from "./open-webhooks.ts";

async function folderFor({ onTestFinished }: Pick<TestContext, "onTestFinished">) {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const secretFile = join(path, "secret");
  await writeFile(secretFile, SECRET);
  const lines: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
  const tally = createEventTallies();
  const open = (args: readonly string[], databases?: ReadonlySet<string>) =>
    openWebhooks(readServeOptions(sourcesOf(args)), { log, tally, databases });
  return {
    path,
    secretFile,
    open,
    lines,
    files: ["--webhook-secret-file", secretFile, "--webhook-dir", path],
  };
}

const URL_FLAG = ["--webhook-url", "https://hooks.example.com/lance"];

describe("the options of webhooks", () => {
  it("announce nothing by default", async (context) => {
    const { open } = await folderFor(context);
    assert.equal(await open([]), undefined);
  });

  it("refuse what is missing, contradicts or cannot work, in a single line without secrets", async (context) => {
    const { open, path, secretFile, files } = await folderFor(context);
    const wrongSecret = join(path, "wrong");
    await writeFile(wrongSecret, "open-sesame");
    const metadata = (host: string) => ["--webhook-url", `http://${host}/latest`, ...files];
    const cases: [RegExp, readonly string[]][] = [
      [/need --webhook-url/, files],
      [/requires --webhook-dir/, [...URL_FLAG, "--webhook-secret-file", secretFile]],
      [/requires --webhook-secret-file/, [...URL_FLAG, "--webhook-dir", path]],
      [
        /missing: it cannot be read: ENOENT/,
        [...URL_FLAG, "--webhook-dir", path, "--webhook-secret-file", join(path, "missing")],
      ],
      [/line 1 must be whsec_/, [...URL_FLAG, "--webhook-dir", path, "--webhook-secret-file", wrongSecret]],
      [/--webhook-dir: /, [...URL_FLAG, "--webhook-secret-file", secretFile, "--webhook-dir", secretFile]],
      [/names https:\/\/hooks.example.com\/lance twice/, [...URL_FLAG, ...URL_FLAG, ...files]],
      [/only if --webhook-allow-address names it/, metadata("169.254.169.254")],
      [/only if --webhook-allow-address names it/, metadata("0xa9fea9fe")],
      [/only if --webhook-allow-address names it/, metadata("[fd00:ec2::254]")],
    ];
    for (const [expected, args] of cases) {
      await assert.rejects(open(args), (error) => {
        assert.ok(error instanceof UsageError, String(error));
        assert.match(error.message, expected);
        assert.doesNotMatch(error.message, /\n|sesame/);
        return true;
      });
    }
    for (const wrong of [
      ["--webhook-url", "hooks.example.com/secret-1"],
      ["--webhook-url", "ftp://hooks.example.com/secret-1"],
      ["--webhook-url", "https://user:secret-1@hooks.example.com"],
      ["--webhook-url", "https://hooks.example.com/#secret-1"],
      ["--webhook-allow-address", "169.254.0.0/33"],
      ["--webhook-allow-address", "metadata"],
      ["--webhook-source", "a b"],
      ["--webhook-timeout", "0s"],
      ["--webhook-retry-for", "soon"],
    ]) {
      assert.throws(
        () => readServeOptions(sourcesOf(wrong)),
        (error) => error instanceof UsageError && !error.message.includes("secret-1"),
        wrong.join(" "),
      );
    }
  });

  it("let a directory serve a single gateway, and the next one after it has ended", async (context) => {
    const { open, files } = await folderFor(context);
    const first = await open([...URL_FLAG, ...files]);
    await assert.rejects(
      open([...URL_FLAG, ...files]),
      /--webhook-dir: .* is for a single gateway: somebody listens on .*lock\.sock/,
    );
    await first?.close();
    await (await open([...URL_FLAG, ...files]))?.close();
  });

  it("warn of events that travel in the clear, except on this machine", async (context) => {
    const { open, files, lines } = await folderFor(context);
    const urls = [
      "http://hooks.example.com/a?token=secret-1",
      "http://localhost:1/b",
      "http://127.0.0.1:1/c",
    ];
    const dispatcher = await open([...urls.flatMap((url) => ["--webhook-url", url]), ...files]);
    await dispatcher?.close();
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? "", /hooks\.example\.com\/a"/);
    assert.doesNotMatch(lines[0] ?? "", /secret-1/);
  });

  it("sign with new secrets once the file has changed, and with the old ones while it is wrong", async (context) => {
    const { open, files, secretFile } = await folderFor(context);
    const { url, received } = await startReceiver(context);
    const dispatcher = await open(["--webhook-url", url, ...files]);
    context.onTestFinished(() => dispatcher?.close());
    const signatures = async () => {
      const before = received.length;
      await dispatcher?.announce([eventOf("t")]);
      await expect.poll(() => received.length).toBe(before + 1);
      return String(received[before]?.headers["webhook-signature"]).split(" ").length;
    };
    assert.equal(await signatures(), 1);
    await writeFile(secretFile, `${SECRET}\nwhsec_${Buffer.alloc(32, 7).toString("base64")}\n`);
    await vi.waitFor(async () => assert.equal(await signatures(), 2), { timeout: 60_000 });
    await writeFile(secretFile, "wrong");
    assert.equal(await signatures(), 2);
  });
});

describe("a webhook of the configuration file", () => {
  it("has types, databases and a secret of its own", async (context) => {
    const { path } = await folderFor(context);
    const file = join(path, "gateway.yaml");
    await writeFile(
      file,
      `webhook-url:
  - https://a.example.com
  - url: \${HOOK}
    secret-file: b.secret
    types: [namespace.*, table.dropped]
    databases: [sales]
`,
    );
    const { options } = await readConfiguration(sourcesOf(["--config", file]), {
      HOOK: "https://b.example.com/?t=1",
    });
    assert.deepEqual(options.webhooks, [
      { url: "https://a.example.com" },
      {
        url: "https://b.example.com/?t=1",
        secretFile: "b.secret",
        types: ["namespace.created", "namespace.dropped", "table.dropped"],
        databases: ["sales"],
      },
    ]);
  });

  it("is refused with types, keys and databases that do not exist", async (context) => {
    const url = "https://b.example.com";
    for (const [expected, setting] of [
      [/url is missing/, {}],
      [/types has no "table.moved"/, { url, types: ["table.moved"] }],
      [/types must be a list of texts/, { url, types: [] }],
      [/secret is unknown/, { url, secret: "s" }],
      [/url must be an address/, { url: "file:///etc" }],
    ] as const)
      assert.throws(() => parseWebhook(JSON.stringify(setting)), expected);
    const { open, files } = await folderFor(context);
    const setting = JSON.stringify({ url, databases: ["sale"] });
    const opening = open(["--webhook-url", setting, ...files], new Set(["sales"]));
    await assert.rejects(opening, /there is no database "sale"/);
  });
});

/** The file is read by operators and by programs. */
it("the file of dead letters is there from the start, for its owner alone", async (context) => {
  const { open, files, path } = await folderFor(context);
  const dispatcher = await open([...URL_FLAG, ...files]);
  assert.equal(await readFile(join(path, "dead-letters.jsonl"), "utf8"), "");
  await dispatcher?.close();
});

/** Opens webhooks over directories, and returns what changes them. */
async function openChanging() {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const secret = join(path, "secret");
  await writeFile(secret, SECRET);
  const wantedOf = (directory: string, ...urls: readonly string[]) => {
    const files = ["--webhook-secret-file", secret, "--webhook-dir", join(path, directory)];
    const flags = urls.length === 0 ? [] : [...urls.flatMap((url) => ["--webhook-url", url]), ...files];
    return { options: readServeOptions(sourcesOf(flags)) };
  };
  const log = pino({ level: "silent" });
  const webhooks = await openLiveWebhooks(wantedOf("a"), { log, tally: createEventTallies() });
  onTestFinished(() => webhooks.close());
  const change = async (directory: string, ...urls: readonly string[]) =>
    (await webhooks.prepare(wantedOf(directory, ...urls))).commit();
  const announce = async (object: string) => {
    const event = eventOf(object);
    await webhooks.announce([event]);
    return event.id;
  };
  return { path, webhooks, wantedOf, change, announce };
}

it("delivers each event to the receivers of its time, without losing one while they change", async () => {
  const [one, two] = [await startReceiver({ onTestFinished }), await startReceiver({ onTestFinished })];
  const { change, announce } = await openChanging();
  await announce("nowhere");
  await change("a", one.url);
  const ids = [await announce("t")];
  await change("a", one.url, two.url);
  ids.push(await announce("t"));
  const idsAt = ({ received }: typeof one) => received.map(({ event }) => event.id);
  await expect.poll(() => idsAt(one)).toEqual(ids);
  await change("b", one.url, two.url);
  ids.push(await announce("t"));
  await expect.poll(() => idsAt(one)).toEqual(ids);
  await expect.poll(() => idsAt(two)).toEqual(ids.slice(1));
  await change("b");
  await announce("nowhere");
  await change("a", one.url);
  ids.push(await announce("t"));
  await expect.poll(() => idsAt(one)).toEqual(ids);
  assert.equal(two.received.length, 2);
});

it("keeps the receivers when a change is wrong or taken back", async () => {
  const { url, received } = await startReceiver({ onTestFinished });
  const { path, webhooks, wantedOf, change, announce } = await openChanging();
  await change("a", url);
  const wrong = wantedOf("a", url, "http://127.0.0.1:1/other");
  const options = { ...wrong.options, webhookSecretFile: join(path, "missing") };
  await assert.rejects(webhooks.prepare({ options }), /--webhook-secret-file .*missing: it cannot be read/);
  await assert.rejects(webhooks.prepare(wantedOf("a", url, url)), /names .* twice/);
  for (const directory of ["a", "b"])
    await (await webhooks.prepare(wantedOf(directory, "http://127.0.0.1:1/other"))).abort();
  await announce("t");
  await expect.poll(() => received.length).toBe(1);
});
