import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { readText } from "../../runtime/files/files-in-time.ts";

/** Files from which a port takes what TLS needs, all in PEM. */
export interface TlsFiles {
  /** The server's certificate, and then those of intermediate authorities. */
  readonly certificate: string;
  /** Private key of the certificate, without a passphrase. */
  readonly key: string;
  /** Authorities that sign the certificates of clients. Default: clients are not asked for a certificate. */
  readonly clientAuthorities?: string | undefined;
}

/** The content of {@link TlsFiles}, checked. */
export interface TlsMaterial {
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
export async function readTlsMaterial(files: TlsFiles): Promise<TlsMaterial> {
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
