import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { createFile, replaceFile } from "../../../src/platform/files/write-atomically.ts";

let path = "";
beforeEach(() => {
  const directory = mkdtempSync(join(tmpdir(), "place-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  path = join(directory, "deep", "secret");
});

test("of several writers one creates the file, whole and for its owner alone", async () => {
  const texts = Array.from({ length: 8 }, (_, index) => String(index).repeat(100));
  const created = await Promise.all(texts.map((text) => createFile(path, text)));
  expect(created.filter(Boolean)).toHaveLength(1);
  expect(readFileSync(path, "utf8")).toBe(texts[created.indexOf(true)]);
  expect([statSync(path).mode & 0o777, statSync(dirname(path)).mode & 0o777]).toEqual([0o600, 0o700]);
  expect(readdirSync(dirname(path))).toEqual(["secret"]);
});

test("what a killed writer left is removed when it is old, and nothing else is", async () => {
  mkdirSync(dirname(path));
  const id = "00000000-0000-4000-8000-000000000000";
  const [stale, fresh, other] = [`secret.${id}.tmp`, `secret.1${id.slice(1)}.tmp`, `other.${id}.tmp`];
  for (const name of [stale, fresh, other]) writeFileSync(join(dirname(path), name), "");
  for (const name of [stale, other]) utimesSync(join(dirname(path), name), 1, 1);
  expect(await createFile(path, "text")).toBe(true);
  expect(readdirSync(dirname(path)).sort()).toEqual([other, fresh, "secret"].sort());
});

test("a replaced file keeps its mode", async () => {
  mkdirSync(dirname(path));
  writeFileSync(path, "old", { mode: 0o640 });
  await replaceFile(path, "new");
  expect([readFileSync(path, "utf8"), statSync(path).mode & 0o777]).toEqual(["new", 0o640]);
  expect(readdirSync(dirname(path))).toEqual(["secret"]);
});
