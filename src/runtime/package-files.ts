import { extname } from "node:path";

// This file is two folders below the package's own, in the sources and, as a chunk, in the built code.

/** Returns the place of a file by its path in the package. */
export const packageFile = (path: string): URL => new URL(`../../${path}`, import.meta.url);

/** Returns the place of a file that lies beside the code, by its path below `src` in the sources and below `dist` in the built package. */
export const codeFile = (path: string): URL => new URL(`../${path}`, import.meta.url);

/** Returns the place of a program of this package, which node starts, by its path without the extension. */
export const programFile = (path: string): URL => codeFile(`${path}${extname(import.meta.filename)}`);
