import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "vitest";
import { SECRET } from "../fixtures/events.ts";
import { temporaryDirectory } from "./directory.ts";

/** Returns the options of a program that sends events to an address, with files of their own. */
export async function webhookTo(url: string, { onTestFinished }: Pick<TestContext, "onTestFinished">) {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const webhookSecretFile = join(path, "secret");
  await writeFile(webhookSecretFile, SECRET);
  return { webhooks: [{ url }], webhookSecretFile, webhookDir: path };
}
