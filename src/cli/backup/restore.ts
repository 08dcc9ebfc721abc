import { existsSync, mkdirSync, renameSync } from "node:fs";
import { basename, join } from "node:path";
import type { Config } from "../../config/config.ts";
import { checkDatabase } from "../../store/embedded/check.ts";
import { isInUse } from "../../store/embedded/copy.ts";
import { createEmbeddedStore } from "../../store/embedded/store.ts";
import { KeyRingFault } from "../../tokens/ring.ts";
import { readRing } from "../../tokens/ring-file.ts";
import type { Context } from "../context.ts";
import { CommandError, refusing } from "../exit.ts";
import { copyWhole, embeddedFiles, type Files, filesOf } from "./files.ts";

type Options = { readonly sessions: "end" | "keep"; readonly force?: boolean; readonly json?: boolean };

export async function restore(context: Context, directory: string, options: Options): Promise<void> {
  const { config, files } = await embeddedFiles(context.env);
  const from = filesOf(directory);
  await checkBackup(from);
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
  const moved = moveAside(config, files, options.force === true);
  copyWhole(from.store, files.store);
  copyWhole(from.keys, files.keys);
  if (existsSync(from.adminToken)) copyWhole(from.adminToken, files.adminToken);
  if (options.sessions === "end") await endSessions(config, files.store);
  const ended = options.sessions === "end";
  if (options.json) context.print(JSON.stringify({ dataDir: config.dataDir, sessionsEnded: ended, replaced: moved }));
  else {
    const what = ended
      ? "every session of the backup is ended"
      : "its sessions are live, also those that had ended since";
    context.print(`restored ${directory} to ${config.dataDir}; ${what}`);
    if (moved !== undefined) context.note(`what was there is in ${moved}`);
  }
}

async function checkBackup(from: Files): Promise<void> {
  const damage = (fault: string) => new CommandError(`this is no whole backup: ${fault}`);
  try {
    const problem = checkDatabase(from.store);
    if (problem !== undefined)
      throw damage(`${from.store} is ${problem === "absent" ? "not there" : `damaged (${problem})`}`);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw damage(`${from.store} cannot be read (${error instanceof Error ? error.message : String(error)})`);
  }
  await refusing([KeyRingFault], () => readRing(from.keys));
}

/** Moves what is in the way into a directory of its own, which is returned. */
function moveAside({ dataDir }: Config, files: Files, force: boolean): string | undefined {
  if (existsSync(files.store) && isInUse(files.store)) {
    throw new CommandError(`a service has ${files.store} open: stop it first`);
  }
  // The -wal and -shm files of another state must not remain beside a restored store.
  const own = [files.store, `${files.store}-wal`, `${files.store}-shm`, files.keys, files.adminToken];
  const present = own.filter((path) => existsSync(path));
  if (present.length === 0) return undefined;
  if (!force) throw new CommandError(`${present[0]} is there already: --force moves it aside`);
  const aside = join(dataDir, `replaced-${new Date().toISOString().replaceAll(/[:.]/g, "-")}`);
  mkdirSync(aside, { mode: 0o700 });
  for (const path of present) renameSync(path, join(aside, basename(path)));
  return aside;
}

async function endSessions({ accessTokenTtl, reuseInterval }: Config, path: string): Promise<void> {
  // Markers outlast the access tokens by a minute, as the service has it.
  const store = createEmbeddedStore({ path, clock: Date.now, reuseInterval, markerLife: accessTokenTtl + 60_000 });
  try {
    await store.revokeAll(undefined);
  } finally {
    await store.close();
  }
}
