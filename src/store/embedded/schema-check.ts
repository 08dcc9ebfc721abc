/** Checks that a file has exactly the tables that a version of this service creates, and nothing else. */
import { DatabaseSync } from "node:sqlite";
import { CLOCK_TABLE } from "./clock.ts";
import { MIGRATIONS } from "./schema.ts";

/**
 * Examines all definitions in the file. A trigger, a view or a constraint in a manipulated file could keep sessions from being ended.
 *
 * @returns the fault, as the end of a sentence; undefined if there is none.
 * @throws errors of SQLite
 */
export function schemaFault(path: string): string | undefined {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 500 });
  const own = new DatabaseSync(":memory:");
  try {
    const version = Number(db.prepare("PRAGMA user_version").get()?.user_version);
    if (version < 1) return "holds no store of this service";
    if (version > MIGRATIONS.length) return `was made by a newer version of this service (schema ${version})`;
    for (const step of MIGRATIONS.slice(0, version)) own.exec(step);
    const required = definitions(own);
    own.exec(CLOCK_TABLE);
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

/** Returns the definitions by type and name, without comments, and without those that SQLite creates by itself. */
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
