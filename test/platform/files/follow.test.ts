/** The reports about a followed file after each reading of it. */
import { once } from "node:events";
import { mkdtempSync, renameSync, rmSync, symlinkSync, watch, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { followFile, type Taken } from "../../../src/platform/files/follow.ts";

const A = new Error("a");
const B = new Error("b");

/** Follows a file whose readings have these outcomes. Returns each report with the number of readings before it. */
function reportsOf(readings: readonly (Error | undefined)[]): Promise<readonly string[]> {
  const reports: string[] = [];
  let count = 0;
  return new Promise((resolve) => {
    const running = setInterval(() => {}, 1_000);
    const stop = followFile<Error>({
      path: join(import.meta.dirname, "nowhere/keys.json"),
      everyMs: 1,
      async take(): Promise<Taken<Error>> {
        const fault = readings[count++];
        if (count > readings.length) {
          stop();
          clearInterval(running);
          resolve(reports);
        }
        return fault === undefined ? { ok: true } : { ok: false, reason: fault };
      },
      onRefusal: ({ message }) => reports.push(`${count}: ${message}`),
      onRecovery: () => reports.push(`${count}: recovered`),
    });
  });
}

test("a fault is reported when a second reading finds it again, and once", async () => {
  expect(await reportsOf([undefined, undefined, A, A, A, A])).toEqual(["4: a"]);
});

test("a file that is half written at one reading is not reported", async () => {
  expect(await reportsOf([A, undefined, A, undefined, undefined, B, A, B, undefined])).toEqual([]);
});

test("another fault is reported as well, and so is the recovery, each when it is found again", async () => {
  expect(await reportsOf([A, A, B, B, undefined, undefined, undefined, A, A, undefined])).toEqual([
    "2: a",
    "4: b",
    "6: recovered",
    "9: a",
  ]);
});

test("a change is taken at once where the file system reports it, and nothing once the file is not followed any more", async () => {
  const directory = mkdtempSync(join(tmpdir(), "follow-"));
  const path = join(directory, "keys.json");
  let count = 0;
  await new Promise<void>((resolve) => {
    const stop = followFile<Error>({
      path,
      everyMs: 2 ** 30,
      async take() {
        if (++count > 1) return { ok: true };
        clearInterval(writing);
        // The test stops following while this reading runs, so no further reading may begin.
        const changed = once(watch(directory, { persistent: false }), "change");
        writeFileSync(path, "{}");
        await changed;
        stop();
        resolve();
        return { ok: true };
      },
      onRefusal: () => {},
    });
    // Only writes after the directory is watched are reported, so the file is written repeatedly.
    const writing = setInterval(() => writeFileSync(path, "{}"), 20);
  });
  await new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));
  expect(count).toBe(1);
  rmSync(directory, { recursive: true });
});

test("what else happens in the directory of a file causes no reading, except the swap of a mounted volume", async () => {
  const directory = mkdtempSync(join(tmpdir(), "follow-"));
  const at = (name: string) => join(directory, name);
  let count = 0;
  let onReading = () => {};
  const stop = followFile<Error>({
    path: at("keys.json"),
    everyMs: 2 ** 30,
    async take() {
      count++;
      onReading();
      return { ok: true };
    },
    onRefusal: () => {},
  });
  const watcher = watch(directory, { persistent: false });
  /** Repeats `change` until this test is notified that the file with this name has changed. Then `followFile` is notified as well. */
  const noticed = async (name: string, change: () => void) => {
    const named = new Promise<void>((resolve) => {
      watcher.on("change", (_, changed) => changed === name && resolve());
    });
    const changing = setInterval(change, 20);
    await named;
    clearInterval(changing);
  };
  await noticed("sessions.db-wal", () => {
    for (let i = 0; i < 100; i++) writeFileSync(at("sessions.db-wal"), `${i}`);
  });
  await new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));
  expect(count).toBe(0);
  // Kubernetes replaces the link `..data`, through which the names of a volume lead to their files.
  for (const name of ["keys.json", "..data"]) {
    const reading = new Promise<void>((resolve) => {
      onReading = resolve;
    });
    await noticed(name, () => {
      symlinkSync("elsewhere", at("new"));
      renameSync(at("new"), at(name));
    });
    await reading;
  }
  stop();
  watcher.close();
  rmSync(directory, { recursive: true });
});
