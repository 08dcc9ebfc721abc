import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { compiled, PROGRAM } from "../../support/program.ts";

test("a command waits for the rest of its standard input", async () => {
  const args = [PROGRAM, "admin-token", "hash", "--name", "ops", "--scope", "sessions:read"];
  const child = spawn(process.execPath, args, { env: { PATH: process.env.PATH, ...compiled() } });
  const ended = once(child, "exit");
  const [out, err] = [text(child.stdout), text(child.stderr)];
  child.stdin.on("error", () => {}); // A command that ends early does not read the rest.
  // It is more than a pipe holds: once it is written, the command has begun to read, and there is nothing more yet.
  await new Promise((written) => child.stdin.write("\n".repeat(1_000_000), written));
  child.stdin.end("late-".repeat(10));
  const [code] = await ended;
  expect([code, await err]).toEqual([0, ""]);
  expect(await out).toContain('"hash"');
});
