// Fixtures of this folder's tests: files of an authority's certificates.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Certificate, makeAuthority, type SignOptions } from "../../../test/support/certificates.ts";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { memoryLog } from "../../wires/grpc/fixture.ts";
import { openTlsIdentity } from "./identity.ts";

/** Creates an authority, and files with a server's certificate that change as the test wants. */
export async function makeTlsFiles() {
  const [authority, folder] = await Promise.all([makeAuthority(), temporaryDirectory()]);
  const files = {
    certificate: join(folder.path, "cert.pem"),
    key: join(folder.path, "key.pem"),
    clientAuthorities: join(folder.path, "clients.pem"),
  };
  const install = async ({ cert, key }: Certificate) => {
    await writeFile(files.key, key);
    await writeFile(files.certificate, cert);
  };
  await install(await authority.sign());
  await writeFile(files.clientAuthorities, authority.ca);
  return {
    ...{ files, install, ca: authority.ca, sign: authority.sign },
    /** Opens the files; with the authorities of clients only if the test wants. */
    async open({ asksClients = false } = {}) {
      const { log, lines } = memoryLog();
      const { certificate, key, clientAuthorities } = files;
      const used = asksClients ? { certificate, key, clientAuthorities } : { certificate, key };
      const identity = await openTlsIdentity({ files: used, log, intervalMs: 10 });
      return { identity, lines };
    },
    renew: async (options?: SignOptions) => install(await authority.sign(options)),
    [Symbol.asyncDispose]: folder.remove,
  };
}
