import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { isMainThread, Worker, workerData } from "node:worker_threads";

/** How often the progress of the copy is measured by its size, in ms. */
const LOOK_MS = 100;

type Work = { readonly path: string; readonly copy: string };

/**
 * Copies a database into a new file, consistently, even while a service writes to it. A separate thread executes this module: SQLite copies
 * in one blocking call. @param onProgress is called with the share that is done, about, from 0 to 1 @throws errors of SQLite
 */
export async function copyDatabase(path: string, copy: string, onProgress: (share: number) => void): Promise<void> {
  const work: Work = { path, copy };
  const worker = new Worker(new URL(import.meta.url), {
    workerData: work,
    execArgv: ["--disable-warning=ExperimentalWarning"], // Node 22 warns that SQLite is experimental.
  });
  const bytes = sizeOf(path) + sizeOf(`${path}-wal`);
  const timer = setInterval(() => onProgress(Math.min(1, sizeOf(copy) / bytes)), LOOK_MS);
  try {
    await new Promise<void>((resolve, reject) => {
      worker.once("error", reject);
      worker.once("exit", () => resolve());
    });
  } finally {
    clearInterval(timer);
  }
}

const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** Returns whether another process has the database open. */
export function isInUse(path: string): boolean {
  const db = new DatabaseSync(path, { timeout: 500 });
  try {
    // In WAL mode every connection holds a shared lock on the file for as long as it is open.
    db.exec("PRAGMA locking_mode = EXCLUSIVE");
    db.exec("BEGIN IMMEDIATE");
    db.exec("ROLLBACK");
    return false;
  } catch (error) {
    // SQLITE_BUSY. A worker runs this module, which is published as a file of its own and imports no other (deploy/packages/join.ts).
    if (error instanceof Error && "errcode" in error && (Number(error.errcode) & 0xff) === 5) return true;
    throw error;
  } finally {
    db.close();
  }
}

if (!isMainThread && typeof workerData === "object" && workerData !== null && "copy" in workerData) {
  const { path, copy } = workerData as Work;
  const db = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
  db.prepare("VACUUM INTO ?").run(copy);
  db.close();
}
