import type { DescExtension, DescFile } from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";

/** Index of the descriptors of a set of files; names are fully qualified, without a leading dot. */
export interface DescriptorIndex {
  /** Names of all services, in the order of their files. */
  readonly services: readonly string[];
  fileNamed(name: string): DescFile | undefined;
  /** Returns the file that declares a message, field, enum, enum value, extension, service or method. */
  fileWithSymbol(name: string): DescFile | undefined;
  fileWithExtension(message: string, number: number): DescFile | undefined;
  /** Returns the numbers of a message's extensions in ascending order; undefined for an unknown message. */
  extensionNumbers(message: string): number[] | undefined;
  /** Returns a file and all its imports; each file precedes its own imports. */
  withImports(file: DescFile): DescFile[];
}

/** Indexes the given files and all their imports. */
export function createDescriptorIndex(roots: readonly DescFile[]): DescriptorIndex {
  const files = new Map<string, DescFile>();
  const symbols = new Map<string, DescFile>();
  const extensions = new Map<string, Map<number, DescFile>>();
  const services: string[] = [];

  for (const root of roots) {
    for (const file of withImports(root)) {
      // The compiler's descriptors name the file `x.proto` as `x`.
      const name = `${file.name}.proto`;
      if (files.has(name)) continue;
      files.set(name, file);
      addSymbols(file);
    }
  }

  function addSymbols(file: DescFile): void {
    for (const type of nestedTypes(file)) {
      symbols.set(type.typeName, file);
      switch (type.kind) {
        case "message":
          if (!extensions.has(type.typeName)) extensions.set(type.typeName, new Map());
          for (const member of [...type.fields, ...type.oneofs]) {
            symbols.set(`${type.typeName}.${member.name}`, file);
          }
          break;
        case "enum": {
          // The values of an enum are siblings of the enum, not its children.
          const scope = type.typeName.slice(0, type.typeName.lastIndexOf(".") + 1);
          for (const value of type.values) symbols.set(scope + value.name, file);
          break;
        }
        case "extension":
          addExtension(type, file);
          break;
        case "service":
          if (roots.includes(file)) services.push(type.typeName);
          for (const method of type.methods) symbols.set(`${type.typeName}.${method.name}`, file);
      }
    }
  }

  function addExtension(extension: DescExtension, file: DescFile): void {
    const extended = extension.extendee.typeName;
    const numbers = extensions.get(extended) ?? new Map<number, DescFile>();
    extensions.set(extended, numbers.set(extension.number, file));
  }

  return {
    services,
    withImports,
    fileNamed: (name) => files.get(name),
    fileWithSymbol: (name) => symbols.get(name),
    fileWithExtension: (message, number) => extensions.get(message)?.get(number),
    extensionNumbers(message) {
      const numbers = extensions.get(message);
      return numbers && [...numbers.keys()].sort((a, b) => a - b);
    },
  };
}

function withImports(file: DescFile): DescFile[] {
  const seen = new Set<DescFile>();
  const importsFirst: DescFile[] = [];
  const add = (next: DescFile) => {
    if (seen.has(next)) return;
    seen.add(next);
    next.dependencies.forEach(add);
    importsFirst.push(next);
  };
  add(file);
  return importsFirst.reverse();
}
