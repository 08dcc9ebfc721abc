import { chmodSync, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { checkDatabase } from "../../store/embedded/check.ts";
import { copyDatabase } from "../../store/embedded/copy.ts";
import { KeyRingFault } from "../../tokens/ring.ts";
import { readRing } from "../../tokens/ring-file.ts";
import type { Context } from "../context.ts";
import { CommandError, refusing } from "../exit.ts";
import { createProgress } from "../output/progress.ts";
import { copyWhole, embeddedFiles, filesOf, sync } from "./files.ts";

export async function backUp(context: Context, directory: string, options: { readonly json?: boolean }): Promise<void> {
  const { files } = await embeddedFiles(context.env);
  if (!existsSync(files.store)) throw new CommandError(`there is no store at ${files.store}`);
  makeEmpty(directory);
  const to = filesOf(directory);
  const umask = process.umask(0o077); // SQLite makes the file
  try {
    await copyStore(files.store, to.store);
    // After the store: the ring of now has every key that a token in the copy may need.
    await refusing([KeyRingFault], () => readRing(files.keys));
    copyWhole(files.keys, to.keys);
    if (existsSync(files.adminToken)) copyWhole(files.adminToken, to.adminToken);
  } finally {
    process.umask(umask);
  }
  const { size } = statSync(to.store);
  if (options.json) context.print(JSON.stringify({ directory, bytes: size }));
  else context.print(`backed up to ${directory}: ${(size / 1_000_000).toFixed(1)} MB`);
}

function makeEmpty(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    if (readdirSync(directory).length > 0) throw new CommandError(`${directory} is not empty`);
    chmodSync(directory, 0o700);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(`${directory} cannot be used (${(error as NodeJS.ErrnoException).code})`);
  }
}

async function copyStore(from: string, to: string): Promise<void> {
  const progress = createProgress("copying", 100);
  try {
    await copyDatabase(from, to, (share) => progress.update(Math.floor(share * 100)));
  } catch (error) {
    throw new CommandError(`${from} cannot be copied: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    progress.end();
  }
  const problem = checkDatabase(to);
  if (problem !== undefined) throw new CommandError(`the copy ${to} is damaged (${problem}): ${from} may be, too`);
  chmodSync(to, 0o600);
  sync(to);
}
