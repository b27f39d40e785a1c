import { UsageError } from "../../config/option-spec.ts";
import type { WebhookOptions, WebhookSurroundings, Webhooks } from "./start-webhooks.ts";

/**
 * Opens the webhooks that the options describe; undefined, with nothing loaded, without any. The process has them once, whatever
 * its number of workers.
 *
 * @throws UsageError for options that are missing or wrong, and for files that cannot be used.
 */
export async function openWebhooks(
  options: WebhookOptions,
  surroundings: WebhookSurroundings,
): Promise<Webhooks | undefined> {
  if (options.webhooks.length === 0) {
    if (options.webhookSecretFile ?? options.webhookDir)
      throw new UsageError("--webhook-secret-file and --webhook-dir need --webhook-url beside them");
    return undefined;
  }
  const { startWebhooks } = await import("./start-webhooks.ts");
  return startWebhooks(options, surroundings);
}
