import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { tableFromIPC } from "apache-arrow";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { sourcesOf } from "../../../test/support/command-line.ts";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { issueKey } from "../../auth/api-keys/key-file.ts";
import { createFetchTransport } from "../../client/connections/connect.ts";
import { connect } from "../../client/index.ts";
import { readServeOptions } from "../../config/serve-options.ts";
import { SqlService } from "../../gen/lance/gateway/v1/sql_pb.ts";
import { startGateway } from "../start-gateway.ts";

const POLICIES = `
  permit (principal in Role::"owner", action, resource);
  permit (principal == User::"api-key:bi", action in [Action::"describe", Action::"read"], resource == Table::"team$people");
`;

/** Starts a gateway with two tables, and returns a function that runs a statement as one of its callers. */
async function start(...more: readonly string[]) {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const [file, policies] = [join(path, "keys.json"), join(path, "policies")];
  await mkdir(policies);
  await writeFile(join(policies, "team.cedar"), POLICIES);
  const keyOf = async (name: string, role: "owner" | "none") =>
    (await issueKey(file, { name, role, groups: [], scope: [] })).text;
  const keys = { owner: await keyOf("ann", "owner"), bi: await keyOf("bi", "none"), nobody: "" };
  const options = readServeOptions(
    sourcesOf([
      ...["--port", "0", "--drain-seconds", "0", "--root", join(path, "root"), "--auth", "api-key"],
      ...["--api-keys-file", file, "--policy-dir", policies, ...more],
    ]),
  );
  const gateway = await startGateway(options, pino({ level: "silent" }));
  onTestFinished(async () => void (await gateway.close("cut off")));
  const uri = `http://127.0.0.1:${gateway.address.port}`;
  await using ns = await connect("connect", { uri, "header.x-api-key": keys.owner });
  await ns.createNamespace({ id: ["team"] });
  for (const name of ["people", "salaries"])
    await ns.createTable({ id: ["team", name] }, [{ id: 1 }, { id: 2 }]);
  const transport = createFetchTransport(uri, (url, init) => fetch(url, init));
  const { runSql } = SqlService.method;
  const run = async (caller: keyof typeof keys, statement: string, more: object = {}) => {
    async function* request() {
      yield create(runSql.input, { statement, ...more });
    }
    const headers: Record<string, string> = keys[caller] === "" ? {} : { "x-api-key": keys[caller] };
    const answer = await transport.stream(runSql, undefined, undefined, headers, request());
    const pieces = await Array.fromAsync(answer.message, ({ data }) => data);
    return JSON.parse(
      JSON.stringify(tableFromIPC(Buffer.concat(pieces)).toArray(), (_, value) =>
        typeof value === "bigint" ? Number(value) : value,
      ),
    );
  };
  return run;
}

test("a statement over Connect reads the tables that its caller may read, and no others", async () => {
  const run = await start();
  expect(await run("owner", "SELECT count(*) AS n FROM team.people JOIN team.salaries USING (id)")).toEqual([
    { n: 2 },
  ]);
  expect(await run("bi", "SELECT sum(id)::INTEGER AS n FROM people", { namespacePath: ["team"] })).toEqual([
    { n: 3 },
  ]);
  expect(await run("bi", "SELECT 1 AS one")).toEqual([{ one: 1 }]);
  await expect(run("bi", "SELECT * FROM team.salaries")).rejects.toThrow(
    /DescribeTable \(describe\) on team\$salaries/,
  );
  await expect(run("bi", "SELECT * FROM team.salaries", { explain: true })).rejects.toThrow(/team\$salaries/);
  await expect(run("nobody", "SELECT 1")).rejects.toThrow(/the gateway needs an API key/);
  await expect(run("owner", "SELECT * FROM read_csv('/etc/passwd')")).rejects.toThrow(/read_csv/);
  await expect(run("owner", "SELEC 1")).rejects.toThrow(/syntax error/);
});

test("a plan is returned in place of rows, and reads none", async () => {
  const run = await start();
  const [row] = await run("owner", "SELECT max(id) FROM team.people WHERE id > 1", { explain: true });
  expect(JSON.parse(row.explain_value)).toMatchObject([
    { name: expect.any(String), children: expect.any(Array) },
  ]);
  await expect(run("owner", "SELECT 1; DROP TABLE x", { explain: true })).rejects.toThrow();
});

test("a statement that reads no table passes the limits of its caller", async () => {
  const run = await start("--rate-limit", "principal=10");
  await expect(
    Promise.all(Array.from({ length: 40 }, () => run("bi", "SELECT sum(range)::INTEGER FROM range(10)"))),
  ).rejects.toThrow(/calls per second/);
});
