/** Makes the directory that services under test record into, for the length of a run. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export default function setup(): (() => void) | undefined {
  if (process.env.EMISSIONS_DIR !== undefined) return undefined;
  const directory = mkdtempSync(join(tmpdir(), "emissions-"));
  process.env.EMISSIONS_DIR = directory;
  return () => rmSync(directory, { recursive: true, force: true });
}
