import { readFileSync } from "node:fs";
import { NON_BLOCKING } from "./non-blocking.ts";

/** A value that is made of files. */
export type FileValue<T> = {
  /** Reads the files. @throws if a file cannot be read, or holds nothing that can be used */
  read(): T;
  /** Reads the files. While one is missing or broken, returns the last value that could be used. */
  current(): T;
};

/**
 * The files are small and read rarely, when a connection is opened, so they are read synchronously. The value is made again only if a file
 * has changed.
 *
 * @param make makes the value of the contents of the files, in the order of their paths
 * @throws as `read`
 */
export function valueOfFiles<T>(paths: readonly string[], make: (texts: readonly string[]) => T): FileValue<T> {
  const readTexts = (flag?: number) => paths.map((path) => readText(path, flag));
  let texts = readTexts();
  let value = make(texts);
  const read = () => {
    const found = readTexts(NON_BLOCKING);
    if (found.some((text, index) => text !== texts[index])) {
      value = make(found);
      texts = found;
    }
    return value;
  };
  return {
    read,
    current() {
      try {
        return read();
      } catch {
        return value;
      }
    },
  };
}

/** Reads a file. The error has its path, which Node leaves out if the path is that of a directory. */
function readText(path: string, flag: number | undefined): string {
  try {
    return readFileSync(path, { encoding: "utf8", flag });
  } catch (error) {
    throw Object.assign(error as Error, { path });
  }
}
