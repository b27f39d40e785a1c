import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { readServeOptions } from "../../src/config/serve-options.ts";
import { startGateway } from "../../src/gateway/start-gateway.ts";
import { people, personStream } from "../support/arrow.ts";
import { sourcesOf } from "../support/command-line.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { copyExample } from "../support/examples.ts";
import { refused } from "../support/expect.ts";
import { type Program, startProgram, startProgramIn } from "../support/program.ts";
import { PROTOCOLS } from "../support/protocols.ts";

const log = pino({ level: "silent" });
let folder: string;
let remove: () => Promise<void>;
beforeAll(async () => {
  ({ path: folder, remove } = await temporaryDirectory());
});
afterAll(() => remove());

async function moduleOf(name: string, source: string): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, source);
  return file;
}

async function whileServing(program: Program, work: (port: number) => Promise<void>): Promise<void> {
  try {
    await work(await program.listening());
  } finally {
    program.child.kill("SIGTERM");
    await program.ended;
  }
}

/** A zone in whose time it is now about the given hour. */
function zoneAt(hour: number): string {
  const offset = (new Date().getUTCHours() - hour + 24) % 24;
  // The signs of these zones are the other way round.
  return offset <= 12 ? `Etc/GMT+${offset}` : `Etc/GMT-${24 - offset}`;
}

describe("the example that closes at night", () => {
  for (const [time, hour] of [
    ["night", 2],
    ["day", 12],
  ] as const) {
    test(`refuses changes and serves reads on every protocol, at ${time}`, async () => {
      const plugin = await copyExample("closed-at-night.ts", folder);
      const root = join(folder, time);
      const serve = ["serve", "--port", "0", "--root", root, "--plugin", plugin];
      await whileServing(startProgramIn({ TZ: zoneAt(hour) }, ...serve), async (port) => {
        for (const [index, [protocol, open]] of Object.entries(PROTOCOLS).entries()) {
          const { client, close } = open(port);
          const id = [`namespace-${index}`];
          await client.listNamespaces();
          const changes = [
            () => client.createNamespace({ id }),
            () => client.createTable({ id: [...id, "t"] }, personStream(people(3))),
          ];
          for (const change of changes) {
            if (time === "day") await change();
            else await refused("PermissionDenied", change());
          }
          const { namespaces } = await client.listNamespaces();
          assert.equal(namespaces.includes(id[0] as string), time === "day", protocol);
          close();
        }
      });
    });
  }
});

describe("a plugin", () => {
  const BACKEND = `
    import { create } from ${JSON.stringify(join(import.meta.dirname, "../../node_modules/@bufbuild/protobuf/dist/esm/index.js"))};
    export default function ({ options, log }) {
      if (options.fails) throw new Error("the backend fails to open");
      return {
        name: "mine",
        operations: {
          async listNamespaces(request, call) {
            return create(call.method.output, { namespaces: [options.answer ?? "none"] });
          },
          async listTables(request, call) {
            return create(call.method.output);
          },
        },
        ready: async () => true,
        close: async () => {},
      };
    }`;

  test("brings a backend, which a flag or a database of the configuration file names", async () => {
    const backend = await moduleOf("backend.mjs", BACKEND);
    const plugin = await moduleOf(
      "plugin.mjs",
      `import open from "./backend.mjs"; export default ({ log }) => ({ backends: { mine: open } });`,
    );
    const config = await moduleOf(
      "gateway.yaml",
      `plugins: [${plugin}]
databases:
  a: { backend: mine, backend-option: { answer: from-a } }
  b: { backend: ${backend}, backend-option: { answer: from-b } }
routes: [{ by: path }]
`,
    );
    const list = async (port: number, prefix = "") => {
      const response = await fetch(`http://127.0.0.1:${port}${prefix}/v1/namespace/%24/list`);
      return ((await response.json()) as { namespaces?: string[] }).namespaces;
    };
    await whileServing(
      startProgram("serve", "--port", "0", "--backend", backend, "--backend-option", "answer=yes"),
      async (port) => assert.deepEqual(await list(port), ["yes"]),
    );
    await whileServing(
      startProgram("serve", "--port", "0", "--plugin", plugin, "--backend", "mine"),
      async (port) => assert.deepEqual(await list(port), ["none"]),
    );
    await whileServing(startProgram("serve", "--port", "0", "--config", config), async (port) => {
      assert.deepEqual(await list(port, "/db/a"), ["from-a"]);
      assert.deepEqual(await list(port, "/db/b"), ["from-b"]);
    });
    const { code, stdout } = await startProgram("ls", "--backend", backend, "--backend-option", "answer=x")
      .ended;
    assert.equal(code, 0);
    assert.match(stdout, /x/);
  });

  test("brings a Fastify plugin, whose routes and hooks are on the gateway's port", async () => {
    const plugin = await moduleOf(
      "fastify.mjs",
      `const mine = async (app) => {
        app.addHook("onRequest", async (request, reply) => void reply.header("x-mine", "yes"));
        app.get("/mine/:name", async ({ params }) => ({ hello: params.name }));
      };
      mine[Symbol.for("skip-override")] = true;
      export default { fastify: mine };`,
    );
    const root = join(folder, "fastify");
    const serve = ["serve", "--port", "0", "--root", root, "--plugin", plugin];
    await whileServing(startProgram(...serve), async (port) => {
      const own = await fetch(`http://127.0.0.1:${port}/mine/ada`);
      assert.deepEqual([own.headers.get("x-mine"), await own.json()], ["yes", { hello: "ada" }]);
      const call = await fetch(`http://127.0.0.1:${port}/v1/namespace/%24/list`);
      assert.deepEqual([call.status, call.headers.get("x-mine")], [200, "yes"]);
    });
  });

  test("that cannot be used stops the start with one line that says why", async () => {
    const file = (name: string, source: string) => moduleOf(`${name}.mjs`, source);
    const backend = await file("failing", BACKEND);
    const twice = await file("twice", "export default { backends: { mine() {} } };");
    const cases: (readonly [RegExp, ...string[]])[] = [
      [/--plugin \.\/nowhere\.js cannot be found/, "--plugin", "./nowhere.js"],
      [/--plugin no-such-package cannot be found/, "--plugin", "no-such-package"],
      [/--plugin undici exports a plugin with the unknown member/, "--plugin", "undici"],
      [/must export a plugin as its default/, "--plugin", await file("text", "export default 1;")],
      [/has no default export/, "--plugin", await file("none", "export const plugin = {};")],
      [/cannot be loaded: .*no-such-import/, "--plugin", await file("import", 'import "no-such-import";')],
      [/cannot be loaded: a mistake/, "--plugin", await file("throws", 'throw new Error("a mistake");')],
      [
        /fails: no licence/,
        "--plugin",
        await file("fails", 'export default () => { throw new Error("no licence"); };'),
      ],
      [/unknown member interceptor;/, "--plugin", await file("typo", "export default { interceptor: [] };")],
      [
        /interceptors must be a list of functions/,
        "--plugin",
        await file("list", "export default { interceptors: {} };"),
      ],
      [/fastify must be a function/, "--plugin", await file("app", "export default { fastify: {} };")],
      [
        /two backends have the name dir/,
        "--plugin",
        await file("dir", "export default { backends: { dir() {} } };"),
      ],
      [/two backends have the name mine/, "--plugin", twice, "--plugin", twice],
      [
        /--backend no-such-package cannot be found; there are dir, rest, grpc, glue, polaris, lakekeeper, unity$/,
        "--backend",
        "no-such-package",
      ],
      [/must export a function as its default/, "--backend", await file("object", "export default {};")],
      [/returns no backend: name is missing/, "--backend", await file("empty", "export default () => ({});")],
      [/the backend fails to open/, "--backend", backend, "--backend-option", "fails=1"],
      [/--root is for the backend dir/, "--backend", backend, "--root", "x"],
      [/--backend-option is for the backend of a plugin/, "--root", folder, "--backend-option", "a=b"],
    ];
    for (const [message, ...args] of cases) {
      const started = async () =>
        startGateway(readServeOptions(sourcesOf(["--port", "0", ...args], {})), log);
      await assert.rejects(started, (error: Error) => {
        assert.match(error.message, message);
        assert.match(error.message, /^[^\n]+$/, "one line");
        return true;
      });
    }
  });
});
