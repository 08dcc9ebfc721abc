/** The development loop, `npm run dev`, in a copy of the tree: changes, faults and their fixes, and its end. */
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../support/free-port.ts";
import { startProgram } from "../support/processes.ts";
import { scratch } from "../support/service.ts";
import { inTime, until } from "../support/until.ts";

const ROOT = join(import.meta.dirname, "../..");
const CONTRACT = "proto/auth/v1/session.proto";
/** A generation starts ten programs, so it may take longer than other events, in ms. */
const GENERATION_MS = 90_000;

/** Copies what the loop reads. Returns the directory, and functions that read and change its files. */
function copyTree() {
  const copy = join(scratch(), "tree");
  for (const name of [
    "src",
    "gen",
    "proto",
    "deploy",
    "docs",
    "test/connect-http-routes",
    "buf.yaml",
    "buf.gen.yaml",
    "package.json",
  ])
    cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  const read = (file: string, root = copy) => readFileSync(join(root, file), "utf8");
  /** Writes a file as this tree has it, with more lines at its end. */
  const change = (file: string, more: string) => writeFileSync(join(copy, file), read(file, ROOT) + more);
  return { copy, read, change };
}

async function startLoop(copy: string) {
  const port = await freePort();
  const loop = startProgram(process.execPath, ["deploy/dev.ts"], {
    cwd: copy,
    env: {
      PATH: `${join(ROOT, "node_modules/.bin")}:${process.env.PATH}`,
      PORT: String(port),
      ADMIN_PORT: String(await freePort()),
      DATA_DIR: join(copy, "data"),
    },
  });
  // The loop passes this signal on to the processes that it has started.
  onTestFinished(async () => {
    loop.kill("SIGINT");
    await inTime("the loop ends", loop.exited);
  });
  let seen = 0;
  /** Waits for a text in the output that follows what was waited for before. */
  const prints = (text: string, limitMs?: number) =>
    until(() => {
      const at = loop.output().indexOf(text, seen);
      if (at < 0) throw new Error(`no "${text}" in: ${loop.output().slice(seen)}`);
      seen = at + text.length;
    }, limitMs);
  const isServing = () =>
    fetch(`http://127.0.0.1:${port}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    );
  return { loop, prints, isServing };
}

test("the loop restarts on a change, generates from changed contracts, survives faults, and ends with everything", async () => {
  const { copy, read, change } = copyTree();
  const { loop, prints, isServing } = await startLoop(copy);
  await prints('"event":"ready"', GENERATION_MS);

  change("src/service/session/errors.ts", "\nconst = 1;\n");
  await prints("errors.ts");
  await prints("Failed running");
  change("src/service/session/errors.ts", "");
  await prints('"event":"ready"');

  change(CONTRACT, "\nmessage {\n");
  await prints(`${CONTRACT}:`, GENERATION_MS);
  await prints("the service runs as before");
  expect(await isServing()).toBe(true);
  change(CONTRACT, "\n// A message that only this test needs.\nmessage OnlyHere {}\n");
  await prints('"event":"ready"', GENERATION_MS);
  expect(read("gen/auth/v1/session_pb.ts")).toContain("OnlyHere");

  loop.kill("SIGINT");
  expect(await inTime("the loop ends", loop.exited)).toBe(0);
  expect(await isServing()).toBe(false);
});
