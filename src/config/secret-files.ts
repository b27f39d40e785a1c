import { readText } from "../runtime/files/files-in-time.ts";
import { type OptionSpec, UsageError } from "./option-spec.ts";

/** Texts for an option, and the name of their place in errors. */
interface Texts {
  readonly texts: readonly string[];
  readonly source: string;
}

/**
 * Returns the values of an option, given the names of the files that hold them; a file of a pair comes with the pair's name, as in
 * `NAME=FILE`. The newline at the end of a file does not count.
 *
 * @throws UsageError for a file that cannot be read or is empty.
 */
export async function textsOfFiles(spec: OptionSpec, { texts, source }: Texts): Promise<readonly string[]> {
  const found: string[] = [];
  for (const text of texts) {
    const name = spec.named ? text.slice(0, text.indexOf("=") + 1) : "";
    found.push(`${name}${await contentOf(text.slice(name.length), source)}`);
  }
  return found;
}

/**
 * Refuses a value that is given both directly and by a file.
 *
 * @throws UsageError
 */
export function refuseTwice(spec: OptionSpec, given: Texts, files: Texts): void {
  const taken = new Set(given.texts.map(nameOf));
  const isTwice = !spec.repeatable || (spec.named && files.texts.some((text) => taken.has(nameOf(text))));
  if (isTwice) throw new UsageError(`${given.source} and ${files.source} contradict each other`);
}

function nameOf(text: string): string {
  return text.slice(0, text.indexOf("=")).toLowerCase();
}

async function contentOf(path: string, source: string): Promise<string> {
  const text = await readOptionFile(source, path);
  const content = text.replace(/\r?\n$/, "");
  if (content === "") throw new UsageError(`${source} ${path} is empty`);
  return content;
}

/**
 * Reads the file that an option names.
 *
 * @param source the option, as errors name it
 * @throws UsageError for a file that cannot be read
 */
export async function readOptionFile(source: string, path: string): Promise<string> {
  return readText(path).catch((cause: NodeJS.ErrnoException) => {
    throw new UsageError(`${source} ${path} cannot be read: ${cause.code ?? cause.message}`, { cause });
  });
}
