import { existsSync, lchownSync, mkdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { errorCode, errorMessage } from "../../../platform/files/error-code.ts";
import { makeDirectory } from "../../../platform/files/make-directory.ts";
import { protectionFault } from "../../../platform/files/protection.ts";
import type { Config } from "../../config/config.ts";
import { StoreUnavailable } from "../../session/ports.ts";
import { systemClock } from "../../session/time.ts";
import { checkDatabase, schemaFault } from "../../store/embedded/check.ts";
import { isInUse } from "../../store/embedded/copy.ts";
import { restoringPath } from "../../store/embedded/schema.ts";
import { createEmbeddedStore } from "../../store/embedded/store.ts";
import { KeyRingFault, type Ring } from "../../tokens/ring.ts";
import { readRing } from "../../tokens/ring-file.ts";
import { CommandError, type Context, withRefusals } from "../context.ts";
import { revokeAsIn } from "../keys/run.ts";
import { copyStore, copyWhole, embeddedFiles, type Files, filesOf, incompleteParts, sync } from "./backup.ts";

type Options = { readonly sessions: "end" | "keep"; readonly force?: boolean; readonly json?: boolean };

export async function restore(context: Context, directory: string, options: Options): Promise<void> {
  const { config, files } = embeddedFiles(context.env);
  const from = filesOf(directory);
  await checkOwners(directory, from, config.dataDir);
  await checkBackup(from);
  const force = options.force === true;
  findPresent(files, force);
  makeDataDir(config.dataDir);
  const ended = options.sessions === "end";
  const copies = beside(files);
  let moved: string | undefined;
  let revoked: readonly string[] = [];
  try {
    await stage(from, copies, existsSync(files.adminToken));
    // The copy is checked rather than its source, which may have been replaced in the meantime.
    const fault = schemaFault(copies.store);
    if (fault !== undefined) throw new CommandError(`this is no backup of this service: ${from.store} ${fault}`);
    if (ended) await endSessions(config, copies.store);
    const before = await readFormerRing(context, files.keys);
    if (before !== undefined)
      revoked = await withRefusals([KeyRingFault], () => revokeAsIn(before, copies.keys, Date.now()));
    giveToService(copies, config.dataDir);
    moved = moveAside(config, files, findPresent(files, force));
    putInPlace(copies, files);
  } finally {
    remove(copies);
  }
  const { dataDir } = config;
  if (options.json) context.print(JSON.stringify({ dataDir, sessionsEnded: ended, replaced: moved, revoked }));
  else {
    const what = ended
      ? "every session of the backup is ended"
      : "its sessions are live, also those that had ended since";
    context.print(`restored ${directory} to ${dataDir}; ${what}`);
    if (revoked.length > 0)
      context.note(`keys that were revoked since the backup are revoked again: ${revoked.join(", ")}`);
    if (moved !== undefined) context.note(`what was there is in ${moved}`);
    if (isOther(files.adminToken, from.adminToken))
      context.note(`the admin token stays as it was; that of the backup is in ${from.adminToken}`);
  }
}

function makeDataDir(path: string): void {
  try {
    makeDirectory(path);
  } catch (error) {
    throw new CommandError(`${path} cannot be used (${errorCode(error)})`);
  }
}

/** Checks that only the current user and DATA_DIR's owner can write to a backup, which decides who is signed in. @throws CommandError */
async function checkOwners(directory: string, from: Files, dataDir: string): Promise<void> {
  const service = statSync(dataDir, { throwIfNoEntry: false })?.uid;
  for (const path of [directory, from.store, `${from.store}-wal`, from.keys, from.adminToken]) {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined) continue;
    const mode = found.isDirectory() ? 0o700 : 0o600;
    const fault = await protectionFault(path, { forbids: "write", mode, rootUsesAny: found.uid === service });
    if (fault !== undefined) throw new CommandError(`${path} ${fault}`);
  }
}

async function checkBackup(from: Files): Promise<void> {
  const damage = (fault: string) => new CommandError(`this is no whole backup: ${fault}`);
  const incomplete = incompleteParts(from);
  if (incomplete.length > 0) throw damage(`it was interrupted, and lacks ${incomplete.join(", ")}`);
  if (!existsSync(from.store)) throw damage(`${from.store} is not there`);
  try {
    const problem = checkDatabase(from.store);
    if (problem !== undefined) throw damage(`${from.store} is damaged (${problem})`);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw damage(`${from.store} cannot be read (${errorMessage(error)})`);
  }
  if (!existsSync(from.keys)) throw damage(`${from.keys} is not there`);
  await withRefusals([KeyRingFault], () => readRing(from.keys));
}

/** Returns a temporary name next to each file, so that renaming puts the copies in place. */
function beside({ store, keys, adminToken }: Files): Files {
  return { store: restoringPath(store), keys: `${keys}.restoring`, adminToken: `${adminToken}.restoring` };
}

/** Returns whether a backup has a file with another content. */
function isOther(present: string, ofBackup: string): boolean {
  return existsSync(present) && existsSync(ofBackup) && !readFileSync(present).equals(readFileSync(ofBackup));
}

/**
 * Copies a backup. If the disk is full, this fails while all old files are still in place.
 *
 * @param hasToken whether there is an admin token. It stays: that of the backup may have been replaced because it had leaked
 */
async function stage(from: Files, to: Files, hasToken: boolean): Promise<void> {
  remove(to); // A restore that was killed may have left copies.
  await copyStore(from.store, to.store);
  copyWhole(from.keys, to.keys);
  if (!hasToken && existsSync(from.adminToken)) copyWhole(from.adminToken, to.adminToken);
}

/** Returns the key ring that the restored one replaces; undefined if there is none. If it is broken, nobody knows which keys it revoked. */
async function readFormerRing({ note }: Context, path: string): Promise<Ring | undefined> {
  try {
    return await readRing(path);
  } catch (error) {
    const isAbsent = error instanceof KeyRingFault && error.absent;
    if (!isAbsent) note(`${errorMessage(error)}; revoke the keys again that were revoked since the backup`);
    return undefined;
  }
}

/**
 * Gives the copies that root has made to the user of the service, who owns DATA_DIR and could not read them otherwise. That user may have
 * put links in their place, to files that must stay root's.
 */
function giveToService(copies: Files, dataDir: string): void {
  if (process.geteuid?.() !== 0) return;
  const { uid, gid } = statSync(dataDir);
  for (const path of Object.values(copies)) if (existsSync(path)) lchownSync(path, uid, gid);
}

function remove({ store, keys, adminToken }: Files): void {
  for (const path of [store, `${store}-wal`, `${store}-shm`, keys, adminToken]) rmSync(path, { force: true });
}

/** Puts the copies in place. The store comes last: if it is in place, its keys are too. */
function putInPlace(copies: Files, files: Files): void {
  for (const which of ["keys", "adminToken", "store"] as const) {
    if (existsSync(copies[which])) renameSync(copies[which], files[which]);
  }
  sync(dirname(files.store));
}

/** Lists the existing files that would be replaced. -wal and -shm files of another state must not stay next to a restored store. */
function findPresent({ store, keys }: Files, force: boolean): readonly string[] {
  if (existsSync(store) && isInUse(store)) throw new CommandError(`a service has ${store} open: stop it first`);
  const present = [keys, store, `${store}-wal`, `${store}-shm`].filter((path) => existsSync(path));
  if (present.length > 0 && !force) throw new CommandError(`${present[0]} is there already: --force moves it aside`);
  return present;
}

function moveAside({ dataDir }: Config, { keys }: Files, present: readonly string[]): string | undefined {
  if (present.length === 0) return undefined;
  const aside = join(dataDir, `replaced-${new Date().toISOString().replaceAll(/[:.]/g, "-")}`);
  mkdirSync(aside, { mode: 0o700 });
  for (const path of present) {
    // The key ring is copied, because a rename fails if it is on another file system. The restored key ring later replaces the old file.
    if (path === keys) copyWhole(keys, filesOf(aside).keys);
    else renameSync(path, join(aside, basename(path)));
  }
  return aside;
}

async function endSessions({ accessTokenTtlMs, reuseIntervalMs }: Config, path: string): Promise<void> {
  // Like the service, this keeps the record of an ended session for a minute longer than access tokens live.
  const store = createEmbeddedStore({
    path,
    clock: systemClock,
    reuseIntervalMs,
    markerLifeMs: accessTokenTtlMs + 60_000,
  });
  try {
    // With an origin, here of no caller, the service records the ending once it runs, in its log and in the history of each user.
    await withRefusals([StoreUnavailable], () => store.revokeAll(undefined, {}));
  } finally {
    await store.close();
  }
}
