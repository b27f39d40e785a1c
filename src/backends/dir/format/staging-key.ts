import { randomBytes } from "node:crypto";
import { keyIn } from "./storage.ts";

const PREFIX = ".staging-";

const STAGING = /^\.staging-(?:upload-)?[0-9a-f]{32}$/;

/**
 * Creates the key of a directory for data that no table refers to yet; remains are removed after a day.
 *
 * @param baseKey the base directory of the catalog
 */
export function newStagingKey(baseKey: string): string {
  return keyIn(baseKey, `${PREFIX}${newStagingId()}`);
}

/**
 * Creates an id of staged data, 32 hexadecimal digits. The first twelve are the time of this server, for people and for
 * older gateways; the sweep in this version uses the storage's time.
 */
export function newStagingId(): string {
  return Date.now().toString(16).padStart(12, "0") + randomBytes(10).toString("hex");
}

/** Whether a name in the base directory belongs to staged data. */
export function isStagingName(name: string): boolean {
  return STAGING.test(name);
}
