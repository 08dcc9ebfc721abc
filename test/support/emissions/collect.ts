/** Creates the directory into which services under test record what they emit, for the duration of a run. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onExit } from "../on-exit.ts";

export default function setup(): void {
  if (process.env.EMISSIONS_DIR !== undefined) return;
  const directory = mkdtempSync(join(tmpdir(), "emissions-"));
  process.env.EMISSIONS_DIR = directory;
  // The directory is also removed after a run that is interrupted, or one that only lists tests.
  onExit(() => rmSync(directory, { recursive: true, force: true }));
}
