import { createHmac } from "node:crypto";
import type { Logger } from "pino";
import { readText } from "../runtime/files/files-in-time.ts";
import { openFollowed, stampOfFiles } from "../runtime/files/follow.ts";

/** Begins a secret, by the convention of Standard Webhooks. */
const SECRET_PREFIX = "whsec_";

/** Shortest and longest secret, in bytes. */
const SECRET_BYTES = { min: 24, max: 64 } as const;

/** Most secrets that sign at the same time: the one that receivers have, and the one that they get. */
const MAX_SECRETS = 2;

/**
 * Reads the secrets of a file: a line each, `whsec_` and the secret in base64.
 *
 * @throws Error that says what is wrong, and repeats nothing of the file.
 */
export function parseSecrets(text: string): readonly Buffer[] {
  const lines = text.split("\n").flatMap((line) => line.trim() || []);
  if (lines.length < 1 || lines.length > MAX_SECRETS) {
    throw new Error(`it must have 1 to ${MAX_SECRETS} secrets, a line each`);
  }
  return lines.map((line, index) => {
    const secret = Buffer.from(line.slice(SECRET_PREFIX.length), "base64");
    const isWhole = line === `${SECRET_PREFIX}${secret.toString("base64")}`;
    if (isWhole && secret.length >= SECRET_BYTES.min && secret.length <= SECRET_BYTES.max) return secret;
    throw new Error(
      `line ${index + 1} must be whsec_ and ${SECRET_BYTES.min} to ${SECRET_BYTES.max} bytes in base64`,
    );
  });
}

/** A message as it goes out. */
interface Message {
  readonly id: string;
  /** When it goes out, in seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

/** Returns the headers that prove where a message comes from, with a signature for each secret. */
export function signatureHeaders(
  { id, timestamp, body }: Message,
  secrets: readonly Buffer[],
): Readonly<Record<string, string>> {
  const signed = `${id}.${timestamp}.${body}`;
  const signatures = secrets.map(
    (secret) => `v1,${createHmac("sha256", secret).update(signed).digest("base64")}`,
  );
  return {
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": signatures.join(" "),
  };
}

/** The secrets of a file, as they are now. */
export interface SecretFile {
  secrets(): readonly Buffer[];
  close(): void;
}

/**
 * Opens a file of secrets. It is read again when it changes; if the new content is wrong, the secrets stay as they were, and the log
 * says why.
 *
 * @param intervalMs interval between looks. Default: that of {@link openFollowed}.
 * @throws Error with a single line.
 */
export async function openSecretFile(path: string, log: Logger, intervalMs?: number): Promise<SecretFile> {
  let secrets: readonly Buffer[];
  const { first, close } = await openFollowed({
    stamp: () => stampOfFiles([path]),
    read: async () => parseSecrets(await readText(path)),
    take(changed) {
      secrets = changed;
      log.info({ path, secrets: secrets.length }, "the secrets of webhooks were read again");
    },
    failed: (error) => log.error({ path, err: error }, "the secrets of webhooks stay as they were"),
    intervalMs,
  });
  secrets = first;
  return { secrets: () => secrets, close };
}
