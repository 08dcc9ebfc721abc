import { chmodSync, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { KeyRingFault } from "../../tokens/ring.ts";
import { readRing } from "../../tokens/ring-file.ts";
import type { Context } from "../context.ts";
import { CommandError, refusing } from "../exit.ts";
import { copyStore, copyWhole, embeddedFiles, filesOf } from "./files.ts";

export async function backUp(context: Context, directory: string, options: { readonly json?: boolean }): Promise<void> {
  const { files } = await embeddedFiles(context.env);
  if (!existsSync(files.store)) throw new CommandError(`there is no store at ${files.store}`);
  makeEmpty(directory);
  const to = filesOf(directory);
  await copyStore(files.store, to.store);
  // After the store: the ring of now has every key that a token in the copy may need.
  await refusing([KeyRingFault], () => readRing(files.keys));
  copyWhole(files.keys, to.keys);
  if (existsSync(files.adminToken)) copyWhole(files.adminToken, to.adminToken);
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
