import assert from "node:assert/strict";
import { appendFile, rename, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "vitest";
import { temporaryDirectory } from "../../../test/fixtures/dir/directory-backend.ts";
import { people, personStream } from "../../../test/support/arrow.ts";
import { isLanceError } from "../../namespace/errors.ts";
import type { FileFormat } from "./formats.ts";
import { openRows } from "./read.ts";

const LINES = `id\n${"1\n".repeat(50_000)}`;

const CONTENTS: readonly (readonly [FileFormat, string | Uint8Array])[] = [
  ["csv", LINES],
  ["jsonl", '{"id":1}\n'.repeat(50_000)],
  ["arrows", personStream(people(5_000))],
];

const CHANGES: Readonly<Record<string, (file: string, content: string | Uint8Array) => Promise<void>>> = {
  grows: (file, content) => appendFile(file, content),
  shrinks: (file) => truncate(file, 100),
  async "is replaced"(file, content) {
    await writeFile(`${file}.new`, content);
    await rename(`${file}.new`, file);
  },
};

for (const [format, content] of CONTENTS)
  for (const [what, change] of Object.entries(CHANGES))
    test(`a file of ${format} that ${what} while it is read is refused`, async (t) => {
      const file = join(await temporaryDirectory(t), "rows");
      await writeFile(file, content);
      const { signal } = new AbortController();
      const open = () => openRows(file, { format, schema: undefined, text: {}, signal, advanced() {} });
      const unchanged = await open();
      assert.ok((await Array.fromAsync(unchanged.bytes)).length > 0);
      const { bytes } = await open();
      await assert.rejects(
        async () => {
          let isFirst = true;
          for await (const _ of bytes) {
            if (isFirst) await change(file, content);
            isFirst = false;
          }
        },
        (error) => isLanceError(error, "InvalidInput") && /changed while it was read/.test(error.message),
      );
    });
