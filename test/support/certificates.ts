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

const EC = { keyType: "ec", algorithm: "sha256" } as const;

/** Creates an authority that signs a certificate for a server and one for a client. */
export async function makeCertificates(): Promise<Certificates> {
  const authority = await generate([{ name: "commonName", value: "test authority" }], {
    ...EC,
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  const ca = { cert: authority.cert, key: authority.private };
  const sign = async (name: string): Promise<Certificate> => {
    const { cert, private: key } = await generate([{ name: "commonName", value: name }], {
      ...EC,
      ca,
      extensions: [
        { name: "basicConstraints", cA: false },
        {
          name: "subjectAltName",
          altNames: [
            { type: 2, value: "localhost" },
            { type: 7, ip: "127.0.0.1" },
          ],
        },
      ],
    });
    return { cert, key };
  };
  return { ca: authority.cert, server: await sign("localhost"), client: await sign("a client") };
}
