import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import type { Logger } from "pino";
import { readText } from "../../runtime/files/files-in-time.ts";
import { openFollowed, stampOfFiles } from "../../runtime/files/follow.ts";

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

/** Files from which a port takes what TLS needs, all in PEM. */
interface TlsFiles {
  /** The server's certificate, and then those of intermediate authorities. */
  readonly certificate: string;
  /** Private key of the certificate, without a passphrase. */
  readonly key: string;
  /** Authorities that sign the certificates of clients. Default: clients are not asked for a certificate. */
  readonly clientAuthorities?: string | undefined;
}

/** The content of {@link TlsFiles}, checked. */
interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string | undefined;
  /** The server's certificate. */
  readonly leaf: X509Certificate;
}

/**
 * Reads what TLS needs.
 *
 * @throws Error with a single line that names the file, if a file cannot be read, does not hold what it must, or if the
 *   key is not that of the certificate.
 */
async function readTlsMaterial(files: TlsFiles): Promise<TlsMaterial> {
  const [cert, key, ca] = await Promise.all([
    textOf(files.certificate),
    textOf(files.key),
    files.clientAuthorities === undefined ? undefined : textOf(files.clientAuthorities),
  ]);
  const [leaf] = certificatesIn(cert, files.certificate) as [X509Certificate];
  if (!leaf.checkPrivateKey(keyIn(key, files.key)))
    throw new Error(`${files.key} is not the key of the certificate in ${files.certificate}`);
  // Without a certificate in it, Node would trust all public authorities.
  if (ca !== undefined) certificatesIn(ca, files.clientAuthorities as string);
  try {
    createSecureContext({ cert, key, ca });
  } catch (error) {
    throw new Error(`${files.certificate} cannot be used: ${lineOf(error)}`);
  }
  return { cert, key, ca, leaf };
}

async function textOf(path: string): Promise<string> {
  return readText(path).catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${path} cannot be read: ${error.code ?? error.message}`);
  });
}

const BEGIN = "-----BEGIN CERTIFICATE-----";
const CERTIFICATE = /-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs;

/** Returns the certificates of a file, which has at least one. */
function certificatesIn(text: string, path: string): readonly X509Certificate[] {
  const blocks = text.match(CERTIFICATE) ?? [];
  // A file that is being written would make the port trust fewer authorities, or show a part of its chain.
  if (text.split(BEGIN).length - 1 > blocks.length) throw new Error(`${path} ends within a certificate`);
  if (blocks.length === 0) throw new Error(`${path} holds no certificate in PEM`);
  return blocks.map((block, index) => {
    try {
      return new X509Certificate(block);
    } catch {
      throw new Error(`${path}: certificate ${index + 1} cannot be read`);
    }
  });
}

function keyIn(text: string, path: string): KeyObject {
  if (/-----BEGIN ENCRYPTED |^Proc-Type: 4,ENCRYPTED/m.test(text))
    throw new Error(`${path} is encrypted; the gateway needs a key without a passphrase`);
  try {
    return createPrivateKey(text);
  } catch {
    throw new Error(`${path} holds no private key in PEM`);
  }
}

function lineOf(error: unknown): string {
  return String((error as Error).message).replaceAll(/\s*\n\s*/g, " ");
}
