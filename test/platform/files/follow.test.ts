/** The reports about a followed file after each reading of it. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, renameSync, rmSync, symlinkSync, watch, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { followFile, loadFollowedTexts, type Taken } from "../../../src/platform/files/follow.ts";
import { PATIENCE_MS } from "../../support/patience.ts";

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

test("a FIFO in place of the file is a fault, and the file is followed again once it is restored", async () => {
  const directory = mkdtempSync(join(tmpdir(), "follow-"));
  const path = join(directory, "certificate.pem");
  writeFileSync(path, "first");
  const followed = await loadFollowedTexts([path], ([text = ""]) => {
    if (text === "") throw new Error("empty");
    return text;
  });
  const running = setInterval(() => {}, 1_000);
  let stop = () => {};
  const changed = new Promise<string>((resolve) => {
    const onRefusal = () => {
      renameTo(path, (temporary) => writeFileSync(temporary, "second"));
    };
    stop = followed.watch({ onChange: resolve, onRefusal }, 1);
  });
  renameTo(path, (temporary) => execFileSync("mkfifo", [temporary]));
  expect(await changed).toBe("second");
  expect(followed.current).toBe("second");
  stop();
  clearInterval(running);
  rmSync(directory, { recursive: true });
});

test("a FIFO in place of a file of a value leaves the value as it is", () => {
  const directory = mkdtempSync(join(tmpdir(), "follow-"));
  const path = join(directory, "password");
  writeFileSync(path, "first");
  // A reading that waits would stop the process, so a child runs it.
  const child = `
    const { valueOfFiles } = await import(${JSON.stringify(new URL("../../../src/platform/files/file-value.ts", import.meta.url))});
    const { execFileSync } = await import("node:child_process");
    const value = valueOfFiles([process.argv[1]], ([text]) => { if (text === "") throw new Error("empty"); return text; });
    execFileSync("sh", ["-c", 'rm "$0" && mkfifo "$0"', process.argv[1]]);
    console.log(value.current());`;
  const timeout = PATIENCE_MS / 2;
  const read = execFileSync(process.execPath, ["--input-type=module", "-e", child, path], {
    encoding: "utf8",
    timeout,
  });
  expect(read).toBe("first\n");
  rmSync(directory, { recursive: true });
});

/** Replaces a file by another one atomically. */
function renameTo(path: string, make: (temporary: string) => void): void {
  make(`${path}.new`);
  renameSync(`${path}.new`, path);
}
