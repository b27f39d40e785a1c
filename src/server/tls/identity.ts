import type { Logger } from "pino";
import { openFollowed, stampOfFiles } from "../../runtime/files/follow.ts";
import { readTlsMaterial, type TlsFiles, type TlsMaterial } from "./material.ts";

/** The certificate that a port shows, and the authorities that it trusts; both change with their files. */
export interface TlsIdentity {
  readonly material: TlsMaterial;
  /** Whether clients are asked for a certificate. */
  readonly asksClients: boolean;
  /** Calls back whenever the files have changed and hold together. */
  onChange(listener: (material: TlsMaterial) => void): void;
  close(): void;
}

/** Options of {@link openTlsIdentity}. */
export interface TlsIdentityOptions {
  readonly files: TlsFiles;
  readonly log: Logger;
  /** Interval between looks at the files, in milliseconds. Default: 1 s. */
  readonly intervalMs?: number;
}

/**
 * Reads the files of TLS, and again when one of them changes. If the changed files cannot be used, everything stays as it was, and
 * the log says why.
 *
 * @throws Error with a single line if the files cannot be used at first.
 */
export async function openTlsIdentity({ files, log, intervalMs }: TlsIdentityOptions): Promise<TlsIdentity> {
  let material: TlsMaterial;
  const listeners: ((material: TlsMaterial) => void)[] = [];
  const paths = Object.values(files).filter((path) => path !== undefined);
  const { first, close } = await openFollowed({
    stamp: () => stampOfFiles(paths),
    read: () => readTlsMaterial(files),
    take(changed) {
      if (isSame(changed, material)) return;
      material = changed;
      for (const listener of listeners) listener(material);
      const { subject, validTo: expires } = material.leaf;
      log.info({ subject, expires }, "new connections get the new certificate");
      noteTimes(material, log);
    },
    failed(error) {
      log.error({ err: error }, "the certificate stays as it was, because its files cannot be used");
    },
    intervalMs,
  });
  material = first;
  noteTimes(material, log);

  return {
    get material() {
      return material;
    },
    asksClients: files.clientAuthorities !== undefined,
    onChange: (listener) => void listeners.push(listener),
    close,
  };
}

function isSame(one: TlsMaterial, other: TlsMaterial): boolean {
  return one.cert === other.cert && one.key === other.key && one.ca === other.ca;
}

/** Warns of a certificate that clients refuse because of its times. */
function noteTimes({ leaf }: TlsMaterial, log: Logger): void {
  const [from, to] = [Date.parse(leaf.validFrom), Date.parse(leaf.validTo)];
  const { subject } = leaf;
  if (to <= Date.now()) log.warn({ subject, expired: leaf.validTo }, "the certificate has expired");
  else if (from > Date.now())
    log.warn({ subject, validFrom: leaf.validFrom }, "the certificate is not valid yet");
}
