import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { otherStream, people, personStream } from "../../support/arrow.ts";

/** The folder with the rows that the sessions in other languages send, as Arrow IPC streams. */
export function writeArrowFiles(): string {
  const folder = mkdtempSync(join(tmpdir(), "lance-gateway-rows-"));
  const files = {
    "people.arrow": personStream(people(3, 1)),
    "more.arrow": personStream(people(2, 10)),
    "merge.arrow": personStream(people(2, 11)),
    "other.arrow": otherStream(),
  };
  for (const [name, data] of Object.entries(files)) writeFileSync(join(folder, name), data);
  return folder;
}
