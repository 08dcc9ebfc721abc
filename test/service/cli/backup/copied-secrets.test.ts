/** The mode of a copied secret at each moment. Every call of `node:fs` is real, and the mode of the copy is read after it. */
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { copyWhole } from "../../../../src/service/cli/backup/backup.ts";

const { observed } = vi.hoisted(() => ({ observed: { path: "", modes: [] as string[] } }));
vi.mock("node:fs", async (importOriginal) => {
  const real = await importOriginal<typeof import("node:fs")>();
  const watched =
    (call: (...given: unknown[]) => unknown) =>
    (...given: unknown[]) => {
      const result = call(...given);
      const found = observed.path === "" ? undefined : real.statSync(observed.path, { throwIfNoEntry: false });
      if (found !== undefined) observed.modes.push((found.mode & 0o777).toString(8));
      return result;
    };
  const entries = Object.entries(real).map(([name, value]) => [
    name,
    /Sync$/.test(name) && typeof value === "function" ? watched(value as never) : value,
  ]);
  return Object.fromEntries(entries);
});

test("belongs to its owner alone from the first moment, whatever the mode of the original and the umask", () => {
  const directory = mkdtempSync(join(tmpdir(), "copied-secrets-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const [from, to] = [join(directory, "keys.json"), join(directory, "copy.json")];
  const umask = process.umask(0);
  onTestFinished(() => void process.umask(umask));
  writeFileSync(from, "secret", { mode: 0o666 });
  observed.path = to;
  copyWhole(from, to);
  observed.path = "";
  expect((statSync(from).mode & 0o777).toString(8)).toBe("666");
  expect(observed.modes.length).toBeGreaterThan(0);
  expect(new Set(observed.modes)).toEqual(new Set(["600"]));
});
