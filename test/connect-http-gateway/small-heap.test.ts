/** The flags with which the command restarts Node. */
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { MAIN, runGateway, startRelay } from "./running.ts";

const { set, upstream } = startRelay();

const SMALL = ["--max-semi-space-size=2", "--heap-growing-percent=50", "--no-maglev"];

/** Returns the arguments of a running Node before those of the command. */
function flagsOf(pid: number | undefined): string[] {
  const [, ...args] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  return args.slice(
    0,
    args.findIndex((arg) => arg.endsWith(MAIN)),
  );
}

test("the command runs with a small heap, in the process that was started", async () => {
  const gateway = await runGateway(...upstream(), "--descriptors", set);
  expect(flagsOf(gateway.process.pid)).toEqual(SMALL);
  expect((await fetch(`${gateway.origin}/v1/items/a`)).status).toBe(200);
  gateway.process.kill("SIGTERM");
  expect(await once(gateway.process, "exit")).toEqual([0, null]);
});

test("flags that Node was given follow those of the command, so that they take precedence", async () => {
  const own = ["--max-semi-space-size=32", "--maglev"];
  const args = [...own, join(process.cwd(), MAIN), ...upstream(), "--descriptors", set, "--listen", "127.0.0.1:0"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  expect(flagsOf(child.pid)).toEqual([...SMALL, ...own]);
});

test("`--heap node` leaves the heap to Node", async () => {
  const gateway = await runGateway(...upstream(), "--descriptors", set, "--heap", "node");
  expect(flagsOf(gateway.process.pid)).toEqual([]);
});

test("a process with a channel to its parent is not replaced, because the channel would be closed", async () => {
  const args = [...upstream(), "--descriptors", set, "--listen", "127.0.0.1:0"];
  const child = fork(MAIN, args, { stdio: ["ignore", "pipe", "inherit", "ipc"], execArgv: [] });
  onTestFinished(() => void child.kill("SIGKILL"));
  if (child.stdout !== null) await once(child.stdout, "data");
  expect([flagsOf(child.pid), child.connected]).toEqual([[], true]);
});

test("the command runs without the flags where a process may not be replaced", async () => {
  const args = ["--permission", "--allow-fs-read=*", "--allow-net", join(process.cwd(), MAIN)];
  const child = spawn(process.execPath, [...args, ...upstream(), "--descriptors", set, "--listen", "127.0.0.1:0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  expect(flagsOf(child.pid)).toEqual(args.slice(0, -1));
});

test("another size of the heap is refused", async () => {
  const child = spawn(process.execPath, [MAIN, ...upstream(), "--descriptors", set, "--heap", "large"]);
  const [text] = (await once(child.stderr, "data")) as [Buffer];
  expect(text.toString()).toBe('connect-http-gateway: --heap: "large" is none of small, node\n');
});
