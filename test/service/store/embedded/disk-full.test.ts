/** A full disk: the store is unavailable, and what it has acknowledged stays. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";

test("a store on a full disk is unavailable, without losing what was acknowledged", () => {
  const directory = mkdtempSync(join(tmpdir(), "store-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "data", "sessions.db");
  // A limit on the size of files simulates a full disk.
  const script = new URL("./fill.ts", import.meta.url).pathname;
  const { stdout, stderr } = spawnSync(
    "sh",
    ["-c", `trap '' XFSZ; ulimit -f 4000; exec "$0" "$@"`, process.execPath, script, path],
    {
      encoding: "utf8",
    },
  );
  expect(stderr).toBe("");
  const { created, ended, failure, ready } = JSON.parse(stdout) as Record<"created" | "ended", string[]> &
    Record<"failure" | "ready", string>;
  expect([failure, ready]).toEqual(["StoreUnavailable", "StoreUnavailable"]);
  expect(created.length).toBeGreaterThan(10);
  const db = new DatabaseSync(path, { readOnly: true });
  const sids = db
    .prepare("SELECT sid FROM sessions")
    .all()
    .map(({ sid }) => sid);
  const log = db
    .prepare("SELECT sid FROM log")
    .all()
    .map(({ sid }) => sid);
  db.close();
  expect(sids).toEqual(expect.arrayContaining(created.filter((sid) => !ended.includes(sid))));
  expect(log).toEqual(expect.arrayContaining(ended));
});
