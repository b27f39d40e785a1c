import { isIP } from "node:net";
import type { Logger } from "pino";
import { UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import type { WebhookOption } from "../../config/webhooks.ts";
import type { AddressGuard } from "../../events/addresses.ts";
import { openSecretFile, type SecretFile } from "../../events/secret-file.ts";
import { createWebhook, type Webhook } from "../../events/webhook.ts";
import { isLoopbackAddress } from "../../runtime/loopback.ts";

/** Receivers of events with the files of their secrets, which are open. */
export interface Receivers {
  readonly webhooks: readonly Webhook[];
  close(): void;
}

/** Facts that receivers depend on. */
export interface ReceiverSurroundings {
  readonly guard: AddressGuard;
  readonly log: Logger;
  /** Names of the databases. Default: there is a single one without a name. */
  readonly databases?: ReadonlySet<string> | undefined;
}

/**
 * Opens the receivers that the options describe.
 *
 * @throws UsageError for options that are missing or wrong, and for files that cannot be used.
 */
export async function openReceivers(
  options: Pick<ServeOptions, "webhooks" | "webhookSecretFile">,
  { guard, log, databases }: ReceiverSurroundings,
): Promise<Receivers> {
  const files = new Map<string, SecretFile>();
  const close = () => {
    for (const file of files.values()) file.close();
  };
  for (const setting of options.webhooks) checkSetting(setting, guard, databases);
  try {
    const webhooks: Webhook[] = [];
    for (const setting of options.webhooks) {
      const path = setting.secretFile ?? options.webhookSecretFile;
      if (path === undefined)
        throw new UsageError("--webhook-url requires --webhook-secret-file, or a secret-file of its own");
      const file = files.get(path) ?? (await openSecrets(path, log));
      files.set(path, file);
      webhooks.push(createWebhook(setting, file.secrets));
    }
    const doubled = webhooks.find(({ key }, index) => webhooks.findIndex((each) => each.key === key) < index);
    if (doubled !== undefined) throw new UsageError(`--webhook-url names ${doubled.shown} twice`);
    warnOfPlainText(webhooks, log);
    return { webhooks, close };
  } catch (error) {
    close();
    throw error;
  }
}

function checkSetting(
  { url, databases: wanted = [] }: WebhookOption,
  guard: AddressGuard,
  databases: ReadonlySet<string> = new Set(),
): void {
  const host = hostOf(url);
  if (isIP(host) !== 0 && !guard.permits(host)) {
    throw new UsageError(`--webhook-url: events go to ${host} only if --webhook-allow-address names it`);
  }
  for (const name of wanted) {
    if (!databases.has(name))
      throw new UsageError(`--webhook-url: there is no database ${JSON.stringify(name)}`);
  }
}

function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[(.*)\]$/, "$1");
}

async function openSecrets(path: string, log: Logger): Promise<SecretFile> {
  return openSecretFile(path, log).catch((error: NodeJS.ErrnoException) => {
    const reason = error.code === undefined ? error.message : `it cannot be read: ${error.code}`;
    throw new UsageError(`--webhook-secret-file ${path}: ${reason}`, { cause: error });
  });
}

function warnOfPlainText(webhooks: readonly Webhook[], log: Logger): void {
  for (const { url, shown } of webhooks) {
    if (url.startsWith("https:") || hostOf(url) === "localhost" || isLoopbackAddress(hostOf(url))) continue;
    log.warn({ webhook: shown }, "events travel in the clear to an address without https");
  }
}
