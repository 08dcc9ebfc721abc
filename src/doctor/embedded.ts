/** Checks the embedded store's file, and its free disk space. */
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "../config/config.ts";
import { errorCode } from "../files/error-code.ts";
import { type Finding, messageOf, reportOf } from "./finding.ts";

/** The free space, in bytes, below which the store may soon refuse writes. */
const MIN_FREE_BYTES = 256 * 1024 * 1024;

/** The result code of SQLite for a file that is not a database (sqlite.org/rescode.html). */
const SQLITE_NOTADB = 26;
const RESTORE = "stop the service, and restore a backup (session-service restore)";

const { ok, warning, fault } = reportOf("embedded store");

export async function checkEmbedded(config: Config): Promise<readonly Finding[]> {
  const path = join(config.dataDir, "sessions.db");
  return [...(await checkFile(path)), ...(await checkSpace(config.dataDir))];
}

async function checkFile(path: string): Promise<readonly Finding[]> {
  const { checkDatabase } = await import("../store/embedded/check.ts");
  try {
    const problem = checkDatabase(path);
    if (problem === "absent") return [ok(`there is no ${path} yet; the first start makes it`)];
    if (problem === undefined) return [ok(`${path} is whole`)];
    return [fault(`${path} is damaged: ${problem}`, RESTORE)];
  } catch (error) {
    const isDatabase = !(error instanceof Error && "errcode" in error && error.errcode === SQLITE_NOTADB);
    const remedy = isDatabase ? "run this as the user of the service" : RESTORE;
    return [fault(`${path} cannot be read (${messageOf(error)})`, remedy)];
  }
}

async function checkSpace(directory: string): Promise<readonly Finding[]> {
  try {
    const { bavail, bsize } = await statfs(directory);
    return judgeSpace(bavail * bsize);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return []; // The file has not been created yet.
    throw error;
  }
}

/** @param free in bytes */
export function judgeSpace(free: number): readonly Finding[] {
  if (free >= MIN_FREE_BYTES) return [];
  const found = `${Math.floor(free / 1024 / 1024)} MiB are free for DATA_DIR: refreshes get 503 when the disk is full`;
  return [warning(found, "free space")];
}
