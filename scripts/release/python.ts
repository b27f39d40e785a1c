import { execFileSync } from "node:child_process";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { contractFiles } from "./contract-files.ts";

/** The package that the stubs are in: pylance has modules `lance.namespace` itself. */
const PACKAGE = "lance_gateway_grpc";

/** Oldest versions of the libraries that the generated code accepts; the generator says so in each file. */
const REQUIRED = /GRPC_GENERATED_VERSION = '(.+)'/;
const PROTOBUF = /# Protobuf Python Version: (.+)/;

/** Writes a Python project with the stubs of the contract, typed. */
export function writePythonProject(root: string, folder: string, version: string, python: string): void {
  const target = join(folder, "src", PACKAGE);
  mkdirSync(target, { recursive: true });
  const outputs = ["--python_out", "--pyi_out", "--grpc_python_out"].map((name) => `${name}=${target}`);
  const args = ["-m", "grpc_tools.protoc", "-I", join(root, "proto"), ...outputs, ...contractFiles(root)];
  execFileSync(python, args, { stdio: "inherit" });

  const generated = globSync("lance/**/*.{py,pyi}", { cwd: target });
  for (const name of generated) {
    const path = join(target, name);
    const text = readFileSync(path, "utf8");
    writeFileSync(path, text.replaceAll(/^(from|import) lance\./gm, `$1 ${PACKAGE}.lance.`));
    writeFileSync(join(dirname(path), "__init__.py"), "");
  }
  for (const name of ["__init__.py", "py.typed", "lance/__init__.py"]) writeFileSync(join(target, name), "");
  for (const name of ["namespace", "gateway"]) writeFileSync(join(target, "lance", name, "__init__.py"), "");

  const service = "lance/namespace/v1/service_pb2";
  const grpc = firstMatch(join(target, `${service}_grpc.py`), REQUIRED);
  const protobuf = firstMatch(join(target, `${service}.py`), PROTOBUF);
  writeFileSync(join(folder, "README.md"), README);
  writeFileSync(join(folder, "LICENSE"), readFileSync(join(root, "LICENSE")));
  writeFileSync(
    join(folder, "pyproject.toml"),
    `[build-system]
requires = ["setuptools>=80"]
build-backend = "setuptools.build_meta"

[project]
name = "lance-gateway-grpc"
version = "${version}"
description = "gRPC stubs of the Lance Namespace API as Lance Gateway serves it."
readme = "README.md"
license = "Apache-2.0"
license-files = ["LICENSE"]
requires-python = ">=3.10"
dependencies = ["googleapis-common-protos>=1.70", "grpcio>=${grpc}", "protobuf>=${protobuf}"]

[tool.setuptools.package-data]
"*" = ["*.pyi", "py.typed"]
`,
  );
}

function firstMatch(path: string, pattern: RegExp): string {
  const found = pattern.exec(readFileSync(path, "utf8"))?.[1];
  if (found === undefined) throw new Error(`${path} has nothing like ${pattern}`);
  return found;
}

const README = `# lance-gateway-grpc

Stubs of the Lance Namespace API for gRPC, as Lance Gateway serves it.

\`\`\`py
import grpc
from ${PACKAGE}.lance.namespace.v1 import namespace_pb2, service_pb2_grpc

stub = service_pb2_grpc.LanceNamespaceServiceStub(grpc.insecure_channel("localhost:2333"))
print(stub.ListNamespaces(namespace_pb2.ListNamespacesRequest()).namespaces)
\`\`\`
`;
