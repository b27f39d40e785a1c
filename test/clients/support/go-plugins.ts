import { join } from "node:path";
import { ROOT, runTool } from "./tools.ts";

const PLUGINS = [
  "google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11",
  "google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.0",
];

/** The folder that has the generators of Go stubs, which are built the first time. */
export async function goPluginsFolder(): Promise<string> {
  const folder = join(ROOT, ".cache", "bin");
  for (const plugin of PLUGINS) await runTool("go", ["install", plugin], { env: { GOBIN: folder } });
  return folder;
}
