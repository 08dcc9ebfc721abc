/** How the embedded store reads the row of a session, as each refresh does. */
import { DatabaseSync, StatementSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { storeMs } from "../../../../src/service/session/time.ts";
import { createSessionRows, rotationOf, sessionOf } from "../../../../src/service/store/embedded/rows.ts";
import { SCHEMA_VERSIONS } from "../../../../src/service/store/embedded/schema-versions.ts";
import { prepareStatements } from "../../../../src/service/store/embedded/statements.ts";
import { grownWithEachCall } from "../../../support/old-generation.ts";
import { fullSession, nonce, subject } from "../../../support/store/sessions.ts";

function tableWithSession() {
  const db = new DatabaseSync(":memory:");
  onTestFinished(() => db.close());
  for (const step of SCHEMA_VERSIONS) db.exec(step);
  const table = createSessionRows(prepareStatements(db));
  const first = nonce();
  const session = table.insert(fullSession(subject()), first, storeMs(1_700_000_000_000));
  return { table, session, first };
}

test("the row of a session is not made in the old generation", () => {
  const { table, session } = tableWithSession();
  // A row that is an object takes 72 bytes there.
  expect(grownWithEachCall(() => table.get(session.sid))).toBeLessThan(8);
});

test.each(["as an array", "as an object, by a Node before 22.16"])(
  "a row that is read %s has all its columns",
  (way) => {
    if (way !== "as an array") withoutArrays();
    const { table, session, first } = tableWithSession();
    const row = table.get(session.sid);
    if (row === undefined) throw new Error("the session was not found");
    expect(sessionOf(row)).toEqual(session);
    expect(rotationOf(row).childNonce).toBe(first);
    expect(row).toMatchObject({ actor: "", ended: 0, examined_at: session.idleExpiresAt });
  },
);

function withoutArrays(): void {
  const method = Object.getOwnPropertyDescriptor(StatementSync.prototype, "setReturnArrays");
  if (method === undefined) return;
  Reflect.deleteProperty(StatementSync.prototype, "setReturnArrays");
  onTestFinished(() => void Object.defineProperty(StatementSync.prototype, "setReturnArrays", method));
}
