/** Examines a database file without changing it. */
import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { CLOCK_TABLE } from "./clock.ts";
import { RESERVATIONS_TABLE } from "./reservations.ts";
import { isHalfRestored } from "./schema.ts";
import { SCHEMA_VERSIONS } from "./schema-versions.ts";

/**
 * Reads the whole file. Returns why it is incomplete; `absent` if there is no file; undefined if there is no fault.
 *
 * @throws errors of SQLite
 */
export function checkDatabase(path: string): string | undefined {
  if (!existsSync(path)) return isHalfRestored(path) ? "its restore was interrupted" : "absent";
  const db = new DatabaseSync(path, { readOnly: true, timeout: 500 });
  try {
    const [first] = db.prepare("PRAGMA quick_check(1)").all();
    const result = String(Object.values(first ?? {})[0]);
    return result === "ok" ? undefined : result;
  } finally {
    db.close();
  }
}

/**
 * Checks that the file has exactly the tables of this service: a trigger, a view or a constraint in a manipulated file could keep sessions
 * from being ended. Returns the fault, as the end of a sentence; undefined if there is none. @throws errors of SQLite
 */
export function schemaFault(path: string): string | undefined {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 500 });
  const own = new DatabaseSync(":memory:");
  try {
    const version = Number(db.prepare("PRAGMA user_version").get()?.user_version);
    if (version < 1) return "holds no store of this service";
    if (version > SCHEMA_VERSIONS.length) return `was made by a newer version of this service (schema ${version})`;
    for (const step of SCHEMA_VERSIONS.slice(0, version)) own.exec(step);
    const required = definitions(own);
    own.exec(CLOCK_TABLE);
    own.exec(RESERVATIONS_TABLE);
    const [found, known] = [definitions(db), definitions(own)];
    const foreign = [...found].find(([name, text]) => known.get(name) !== text);
    if (foreign !== undefined) return `has a ${foreign[0]} that this service did not make`;
    const missing = [...required.keys()].find((name) => !found.has(name));
    return missing === undefined ? undefined : `lacks the ${missing}`;
  } finally {
    db.close();
    own.close();
  }
}

/** Returns the SQL of the tables, indexes and the like, by type and name, without comments. What SQLite creates by itself is left out. */
function definitions(db: DatabaseSync): ReadonlyMap<string, string> {
  const rows = db
    .prepare("SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    .all();
  return new Map(
    rows.map(({ type, name, sql }) => [
      `${type} ${name}`,
      String(sql)
        .replaceAll(/--.*|\s+/g, " ")
        .replaceAll(/ +/g, " "),
    ]),
  );
}
