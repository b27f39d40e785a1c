import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { describe, it, type TestContext } from "vitest";
import { sourcesOf } from "../../../test/support/command-line.ts";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { UsageError } from "../../config/option-spec.ts";
import { readServeOptions } from "../../config/serve-options.ts";
import { openVendor } from "./open-vendor.ts";

const ROLE = ["--vend-aws-role", "arn:aws:iam::123456789012:role/tables"];
const BUCKET = ["--root", "s3://lake/catalog"];

function open(flags: readonly string[], environment: Record<string, string> = {}) {
  const lines: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => lines.push(line) });
  const options = readServeOptions(sourcesOf(flags));
  const vendor = openVendor(options, { aws_region: "eu-west-1" }, environment, log);
  return { vendor, lines };
}

async function fileWith({ onTestFinished }: TestContext, content: unknown): Promise<string> {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const file = join(path, "vend.json");
  await writeFile(file, JSON.stringify(content));
  return file;
}

describe("the options of credential vending", () => {
  it("vend nothing by default", async () => {
    assert.equal(await open(BUCKET).vendor, undefined);
  });

  it("refuse what is missing or contradicts, in a single line", async () => {
    const cases: [RegExp, ...string[]][] = [
      [/needs a root in an object store/, "--vend", "aws-sts", ...ROLE],
      [/needs a root in an object store/, "--vend", "static", "--root", "file:///data"],
      [/needs a root such as s3:/, "--vend", "aws-sts", ...ROLE, "--root", "gs://lake"],
      [/google-token needs a root such as gs:/, "--vend", "google-token", ...BUCKET],
      [/azure-sas needs a root such as az:/, "--vend", "azure-sas", ...BUCKET],
      [
        /azure-sas requires --vend-access read or manage/,
        ...["--vend", "azure-sas", "--root", "az://lake", "--vend-access", "write"],
      ],
      [/requires --vend-aws-role/, "--vend", "aws-sts", ...BUCKET],
      [/requires --vend-file/, "--vend", "static", ...BUCKET],
      [/missing\.yaml cannot be read/, "--vend", "static", ...BUCKET, "--vend-file", "/missing.yaml"],
    ];
    for (const [expected, ...flags] of cases) {
      await assert.rejects(open(flags).vendor as Promise<unknown>, (error) => {
        assert.ok(error instanceof UsageError);
        assert.match(error.message, expected);
        return !error.message.includes("\n");
      });
    }
    for (const wrong of [
      ["--vend-aws-role", "tables"],
      ["--vend-duration", "1m"],
      ["--vend-duration", "13h"],
      ["--vend-access", "admin"],
      ["--vend-aws-endpoint", "file:///x"],
    ])
      assert.throws(() => readServeOptions(sourcesOf([...BUCKET, ...wrong])), UsageError);
  });

  it("hand out the options of a file, whose values may be in the environment", async (context) => {
    const file = await fileWith(context, {
      locations: [
        {
          location: "s3://lake/catalog",
          "storage-options": { AWS_ACCESS_KEY_ID: "id", aws_secret_access_key: `\${KEY}` },
        },
        { location: "s3://other", "storage-options": { aws_access_key_id: "other" } },
        { location: "gs://lake", "storage-options": { google_storage_token: "other" } },
      ],
    });
    const { vendor, lines } = open([...BUCKET, "--vend", "static", "--vend-file", file], { KEY: "secret-1" });
    assert.deepEqual(await (await vendor)?.vend({}, "catalog/data/t.lance"), {
      aws_access_key_id: "id",
      access_key_id: "id",
      aws_secret_access_key: "secret-1",
      secret_access_key: "secret-1",
    });
    assert.deepEqual(await (await vendor)?.vend({}, "elsewhere/t.lance"), {});
    assert.match(lines.join(""), /everyone who reaches the port gets credentials/);
    assert.doesNotMatch(lines.join(""), /secret-1/);
  });

  it("refuse a file with mistakes, and repeat none of its values", async (context) => {
    const options = { aws_access_key_id: "id" };
    const cases: [RegExp, unknown][] = [
      [/locations must name at least one/, {}],
      [/location must be a place/, { locations: [{ location: "/data", "storage-options": options }] }],
      [/storage-options is missing/, { locations: [{ location: "s3://lake" }] }],
      [
        /access must be one of/,
        { locations: [{ location: "s3://lake", access: "all", "storage-options": options }] },
      ],
      [
        /prefix is unknown/,
        { locations: [{ location: "s3://lake", prefix: "p", "storage-options": options }] },
      ],
      [
        /storage-options\.aws_token must be a text/,
        { locations: [{ location: "s3://lake", "storage-options": { aws_token: { value: "secret-2" } } }] },
      ],
    ];
    for (const [expected, content] of cases) {
      const flags = [...BUCKET, "--vend", "static", "--vend-file", await fileWith(context, content)];
      await assert.rejects(open(flags).vendor as Promise<unknown>, (error: Error) => {
        assert.match(error.message, expected);
        return !error.message.includes("secret-2");
      });
    }
  });

  it("warn nobody if callers prove who they are, and give nothing to a caller about whom nothing decides", async (context) => {
    const file = await fileWith(context, {
      locations: [{ location: "s3://lake", "storage-options": { a: "b" } }],
    });
    const { vendor, lines } = open([
      ...[...BUCKET, "--vend", "static", "--vend-file", file],
      ...["--auth", "api-key", "--api-keys-file", "keys.json"],
    ]);
    assert.deepEqual(await (await vendor)?.vend({}, "t"), {});
    assert.deepEqual(await (await vendor)?.vend({ may: () => true }, "t"), { a: "b" });
    assert.deepEqual(lines, []);
  });
});
