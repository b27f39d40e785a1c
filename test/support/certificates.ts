import { generate } from "selfsigned";

/** A certificate and its key, in PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** The authority of a test, and the certificates that it has signed. */
export interface Certificates {
  /** The authority's certificate, in PEM. */
  readonly ca: string;
  /** The certificate of a server on 127.0.0.1 and `localhost`. */
  readonly server: Certificate;
  readonly client: Certificate;
}

/** A name in a certificate. */
export interface AlternativeName {
  readonly kind: "email" | "DNS" | "URI" | "IP";
  readonly value: string;
}

/** Options of a certificate. */
export interface SignOptions {
  readonly commonName?: string;
  /** Default: those of a server on this machine. */
  readonly names?: readonly AlternativeName[];
  /** Default: in a year. */
  readonly expires?: Date;
  /** Default: for everything. */
  readonly usage?: "serverAuth" | "clientAuth";
}

/** An authority. */
export interface Authority {
  /** Its certificate, in PEM. */
  readonly ca: string;
  sign(options?: SignOptions): Promise<Certificate>;
}

const EC = { keyType: "ec", algorithm: "sha256" } as const;
const KINDS = { email: 1, DNS: 2, URI: 6, IP: 7 } as const;
const THIS_MACHINE: readonly AlternativeName[] = [
  { kind: "DNS", value: "localhost" },
  { kind: "IP", value: "127.0.0.1" },
];

/** Creates an authority. */
export async function makeAuthority(): Promise<Authority> {
  const authority = await generate([{ name: "commonName", value: "test authority" }], {
    ...EC,
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  const ca = { cert: authority.cert, key: authority.private };
  return {
    ca: authority.cert,
    async sign({ commonName = "localhost", names = THIS_MACHINE, expires, usage } = {}) {
      const altNames = names.map(({ kind, value }) => ({ type: KINDS[kind], value, ip: value }) as never);
      const { cert, private: key } = await generate([{ name: "commonName", value: commonName }], {
        ...EC,
        ca,
        ...(expires !== undefined && {
          notBeforeDate: new Date(expires.getTime() - 86_400_000),
          notAfterDate: expires,
        }),
        extensions: [
          { name: "basicConstraints", cA: false },
          ...(altNames.length === 0 ? [] : [{ name: "subjectAltName", altNames } as const]),
          ...(usage === undefined ? [] : [{ name: "extKeyUsage", [usage]: true } as const]),
        ],
      });
      return { cert, key };
    },
  };
}

/** Creates an authority that signs a certificate for a server and one for a client. */
export async function makeCertificates(): Promise<Certificates> {
  const { ca, sign } = await makeAuthority();
  return { ca, server: await sign(), client: await sign({ commonName: "a client" }) };
}
