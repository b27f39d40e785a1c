import { createHash, createHmac } from "node:crypto";
import type { Logger } from "pino";
import { type Agent, request } from "undici";
import { type ChangeEvent, type ChangeType, EVENT_PREFIX } from "../namespace/change-event.ts";
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

/** The outcome of an attempt to deliver an event. */
export type Attempt = "delivered" | FailedAttempt;

/** An attempt that failed. */
export interface FailedAttempt {
  /** For the log and for dead letters. */
  readonly reason: string;
  /** Whether the receiver wants no further attempt. */
  readonly isFinal?: boolean;
  /** How long the receiver wants to be left alone, in milliseconds. */
  readonly pauseMs?: number;
}

/** What is delivered. */
export interface Letter {
  readonly id: string;
  /** The event as JSON. */
  readonly body: string;
}

/** Most of an answer that is read, in bytes; the rest costs the connection. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** The receiver is gone and says so. */
const GONE = 410;

/** Sends a letter once. It follows no redirect, and never rejects. */
export async function send(
  agent: Agent,
  webhook: Webhook,
  { id, body }: Letter,
  timeoutMs: number,
  end: AbortSignal,
): Promise<Attempt> {
  const signal = AbortSignal.any([end, AbortSignal.timeout(timeoutMs)]);
  const timestamp = Math.floor(Date.now() / 1000);
  try {
    const answer = await request(webhook.url, {
      dispatcher: agent,
      method: "POST",
      headers: {
        "content-type": "application/cloudevents+json; charset=utf-8",
        "user-agent": "lance-gateway",
        ...signatureHeaders({ id, timestamp, body }, webhook.secrets()),
      },
      body,
      signal,
    });
    const { statusCode, headers } = answer;
    await answer.body.dump({ limit: MAX_ANSWER_BYTES, signal }).catch(() => {});
    if (statusCode >= 200 && statusCode < 300) return "delivered";
    return {
      reason: `it answers ${statusCode}`,
      isFinal: statusCode === GONE,
      pauseMs: pauseOf(headers["retry-after"]),
    };
  } catch (error) {
    return { reason: reasonOf(error, timeoutMs) };
  }
}

/** Returns the time that a header asks for, in milliseconds: seconds, or a date. */
function pauseOf(header: string | string[] | undefined): number {
  const text = String(header);
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : 0;
}

function reasonOf(error: unknown, timeoutMs: number): string {
  const { name, code, message } = error as NodeJS.ErrnoException;
  if (name === "TimeoutError") return `it does not answer within ${timeoutMs} ms`;
  return message || code || name;
}

/** A receiver of events, as the operator describes it. */
export interface WebhookSetting {
  readonly url: string;
  /** Types of the events that it gets. Default: all. */
  readonly types?: readonly ChangeType[] | undefined;
  /** Databases whose events it gets. Default: all. */
  readonly databases?: readonly string[] | undefined;
}

/** A receiver of events. */
export interface Webhook {
  /** Identifies it in files, without showing its address. */
  readonly key: string;
  readonly url: string;
  /** Its address without the query, which may be a secret: for logs, metrics and files. */
  readonly shown: string;
  /** Secrets that sign what it gets, at least one. */
  secrets(): readonly Buffer[];
  /** Whether it wants an event. */
  accepts(event: ChangeEvent): boolean;
}

/** Creates a receiver. @param secrets returns the secrets as they are now. */
export function createWebhook(
  { url, types, databases }: WebhookSetting,
  secrets: () => readonly Buffer[],
): Webhook {
  const wanted = types && new Set<string>(types.map((type) => `${EVENT_PREFIX}${type}`));
  return {
    key: createHash("sha256").update(url).digest("hex").slice(0, 16),
    url,
    shown: shownAddress(url),
    secrets,
    accepts({ type, data }) {
      if (wanted?.has(type) === false) return false;
      return databases === undefined || databases.includes(data.database ?? "");
    },
  };
}

function shownAddress(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}
