/** Checks the embedded store's file, and its free disk space. */
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "../../config/config.ts";
import { errorCode, errorMessage } from "../../platform/files/error-code.ts";
import type { Report } from "./finding.ts";

/** The free space, in bytes, below which the store may soon refuse writes. */
const MIN_FREE_BYTES = 256 * 1024 * 1024;

/** The result code of SQLite for a file that is not a database (sqlite.org/rescode.html). */
const SQLITE_NOTADB = 26;
const RESTORE = "stop the service, and restore a backup (session-service restore)";

export async function checkEmbedded(report: Report, config: Config): Promise<void> {
  if (config.redis !== undefined) return;
  await checkFile(report, join(config.dataDir, "sessions.db"));
  await checkSpace(report, config.dataDir);
}

async function checkFile(report: Report, path: string): Promise<void> {
  const { checkDatabase } = await import("../../store/embedded/check.ts");
  try {
    const problem = checkDatabase(path);
    if (problem === "absent") report.ok(`there is no ${path} yet; the first start makes it`);
    else if (problem === undefined) report.ok(`${path} is whole`);
    else report.fault(`${path} is damaged: ${problem}`, RESTORE);
  } catch (error) {
    const isDatabase = !(error instanceof Error && "errcode" in error && error.errcode === SQLITE_NOTADB);
    const remedy = isDatabase ? "run this as the user of the service" : RESTORE;
    report.fault(`${path} cannot be read (${errorMessage(error)})`, remedy);
  }
}

async function checkSpace(report: Report, directory: string): Promise<void> {
  try {
    const { bavail, bsize } = await statfs(directory);
    judgeSpace(report, bavail * bsize);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error; // The directory does not exist yet.
  }
}

/** @param free in bytes */
export function judgeSpace(report: Pick<Report, "warning">, free: number): void {
  if (free >= MIN_FREE_BYTES) return;
  const found = `${Math.floor(free / 1024 / 1024)} MiB are free for DATA_DIR: refreshes get 503 when the disk is full`;
  report.warning(found, "free space");
}
