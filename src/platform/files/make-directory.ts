import { mkdirSync } from "node:fs";
import { resolve } from "node:path";

/** Makes a directory that only its owner can read, and those above it, unless it exists. @throws errors of the file system */
export function makeDirectory(path: string): void {
  // In a working directory that was removed, `resolve` throws, while `mkdirSync` would try a relative path forever.
  mkdirSync(resolve(path), { recursive: true, mode: 0o700 });
}
