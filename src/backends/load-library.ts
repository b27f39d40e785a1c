/**
 * Loads a library that is installed only where it is used.
 *
 * @param user the option or address that needs the library, for the error.
 * @throws Error with one clear line for a missing package.
 */
export async function loadLibrary<T>(user: string, name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND";
    if (!missing || !String(error).includes(name)) throw error;
    throw new Error(`${user} needs the package ${name}; install it with npm install ${name}`, {
      cause: error,
    });
  }
}
