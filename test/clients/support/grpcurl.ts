import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const MODULE = "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4";
const folder = join(import.meta.dirname, "..", "..", "..", ".cache", "bin");

/** The folder that has grpcurl, which is built by the Go tool chain the first time. */
export async function grpcurlFolder(): Promise<string> {
  if (!existsSync(join(folder, "grpcurl"))) {
    await promisify(execFile)("go", ["install", MODULE], { env: { ...process.env, GOBIN: folder } });
  }
  return folder;
}
