/** What a command does when its output cannot be written. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compiled, PROGRAM } from "../../support/program.ts";
import { request } from "../../support/raw-http.ts";
import { type Service, startService } from "../../support/service.ts";
import { until } from "../../support/until.ts";

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service?.stop());

const env = () => ({ PATH: process.env.PATH, ...compiled(), ADMIN_TOKEN: service.adminToken });

test("a full disk below the output is a failure, reported in one line", () => {
  const args = ["-c", `"$0" "$@" > /dev/full`, process.execPath, PROGRAM];
  for (const command of [["config", "show"], ["--help"], ["sessions", "list", "--url", service.adminUrl, "--json"]]) {
    const { status, stderr } = spawnSync("sh", [...args, ...command], { env: env(), encoding: "utf8" });
    expect([status, stderr]).toEqual([1, "standard output cannot be written (ENOSPC)\n"]);
  }
});

test("nobody reads the remarks: a command that serves goes on", async () => {
  const args = ["forward-auth", "--url", service.adminUrl, "--issuer", service.publicUrl, "--port", "0"];
  const child = spawn(process.execPath, [PROGRAM, ...args], { env: env(), stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "exit");
  child.stderr.destroy();
  const [ready] = await once(child.stdout, "data");
  const { url } = JSON.parse(String(ready));
  // It has logged by then that it read the keys and follows the feed.
  await until(async () => expect((await request(url, { path: "/readyz" })).status).toBe(200));
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
});
