/** Checks whether a database file is complete, without changing it. */
import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

/**
 * Checks the file.
 *
 * @returns the fault; `absent` if there is no file; undefined if there is no fault.
 * @throws errors of SQLite
 */
export function checkDatabase(path: string): string | undefined {
  if (!existsSync(path)) return "absent";
  const db = new DatabaseSync(path, { readOnly: true, timeout: 500 });
  try {
    const [first] = db.prepare("PRAGMA quick_check(1)").all();
    const result = String(Object.values(first ?? {})[0]);
    return result === "ok" ? undefined : result;
  } finally {
    db.close();
  }
}
