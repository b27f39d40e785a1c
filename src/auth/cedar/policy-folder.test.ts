import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { describe, it, onTestFinished, vi } from "vitest";
import { ann } from "../../../test/fixtures/auth/principal.ts";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import type { Access } from "../../namespace/authorizer.ts";
import { openPolicyFolder } from "./policy-folder.ts";

const read: Access = {
  operation: "QueryTable",
  action: "read",
  object: { kind: "Table", database: undefined, id: ["t"] },
};

const ALL = 'permit (principal == User::"api-key:ann", action, resource);';
const patient = { timeout: 60_000 };

async function folderOf(files: Readonly<Record<string, string>>) {
  const { path: directory, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const write = (name: string, text: string) => writeFile(join(directory, name), text);
  for (const [name, text] of Object.entries(files)) await write(name, text);
  const lines: string[] = [];
  const log = pino({ base: undefined }, { write: (line) => void lines.push(line) });
  const open = async () => {
    const folder = await openPolicyFolder({ directory, log, intervalMs: 5 });
    onTestFinished(folder.close);
    return folder;
  };
  return { directory, write, lines, open };
}

describe("a directory of policies", () => {
  it("is read again when a file changes, appears or disappears", async () => {
    const { directory, write, open } = await folderOf({ "a.cedar": ALL, "notes.txt": "no policy" });
    const { allows } = await open();
    assert.equal(allows(ann, read), true);
    await write("b.cedar", 'forbid (principal, action == Action::"QueryTable", resource);');
    await vi.waitFor(() => assert.equal(allows(ann, read), false), patient);
    await rm(join(directory, "b.cedar"));
    await vi.waitFor(() => assert.equal(allows(ann, read), true), patient);
    await write("a.cedar", ALL.replace("ann", "bob"));
    await vi.waitFor(() => assert.equal(allows(ann, read), false), patient);
  });

  it("keeps its policies while the new ones are wrong, and says why", async () => {
    const { directory, write, lines, open } = await folderOf({ "a.cedar": ALL });
    const { allows } = await open();
    await write("b.cedar", "forbid (principal, action,");
    await vi.waitFor(
      () => assert.match(lines.join(""), /b\.cedar:1: unexpected.*stay as they were/),
      patient,
    );
    assert.equal(allows(ann, read), true);
    await rm(join(directory, "a.cedar"));
    await rm(join(directory, "b.cedar"));
    await vi.waitFor(() => assert.match(lines.join(""), /has no file \*\.cedar/), patient);
    assert.equal(allows(ann, read), true);
  });

  for (const [fault, files, message] of [
    ["no policies", {}, /has no file \*\.cedar/],
    [
      "a text that is none",
      { "a.cedar": "\n\npermit (principal, action resource);" },
      /^a\.cedar:3: unexpected/,
    ],
    [
      "an unknown action",
      { "a.cedar": 'permit (principal, action in Action::"raed", resource);' },
      /a\.cedar#1.*did you mean `Action::"read"`/,
    ],
    [
      "an unknown role",
      { "a.cedar": 'permit (principal in Role::"king", action, resource);' },
      /a\.cedar#1.*Role/,
    ],
    [
      "an unknown attribute",
      { "a.cedar": `${ALL}\npermit (principal, action, resource) when { resource.owner == "x" };` },
      /a\.cedar#2.*owner/,
    ],
    [
      "a policy that never applies",
      { "a.cedar": 'permit (principal, action == Action::"read", resource);' },
      /a\.cedar#1.*unable to find an applicable action/,
    ],
    [
      "a template",
      { "a.cedar": "permit (principal == ?principal, action, resource);" },
      /a\.cedar: templates/,
    ],
    [
      "a name twice",
      { "a.cedar": `@id("x") ${ALL}`, "b.cedar": `@id("x") ${ALL}` },
      /two policies have the name "x"/,
    ],
    [
      "the address of a caller",
      { "a.cedar": 'permit (principal, action, resource) when { context.peer == "x" };' },
      /a\.cedar#1.*context/,
    ],
  ] as const) {
    it(`with ${fault} is refused at the start`, async () => {
      const { open } = await folderOf(files);
      await assert.rejects(open(), (error: Error) => {
        assert.match(error.message, message);
        return true;
      });
    });
  }

  it("names policies by their places, beyond the tenth of a file, too", async () => {
    const wrong = 'permit (principal, action in Action::"x", resource);';
    const { open } = await folderOf({ "a.cedar": `${`${ALL}\n`.repeat(11)}${wrong}` });
    await assert.rejects(open(), /^Error: a\.cedar#12:/);
  });
});
