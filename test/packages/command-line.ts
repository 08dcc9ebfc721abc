/** Runs every command of the packed service in the directory of a consumer. packages.test.ts builds the packages and uses this module. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test } from "vitest";
import { scratch } from "../support/service.ts";
import type { Directory } from "./install.ts";

/** @param directory the directory in which the package is installed when the tests run */
export function testCommands(node: string, directory: () => Directory): void {
  const dataDir = join(scratch(), "data");
  const common = { PATH: process.env.PATH ?? "", DATA_DIR: dataDir };
  let service: ChildProcess;
  let env: Record<string, string>;
  const main = () => join(directory().path, "node_modules/.bin/session-service");

  beforeAll(async () => {
    const started = { ...common, PORT: "0", ADMIN_PORT: "0", DRAIN_DELAY: "0" };
    service = spawn(node, [main()], { cwd: directory().path, env: started, stdio: ["ignore", "pipe", "ignore"] });
    const lines = createInterface({ input: service.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
    const ready = JSON.parse(String((await lines.next()).value)) as { admin: string };
    service.stdout?.resume();
    const { port } = new URL(ready.admin);
    env = { ...common, PORT: "0", ADMIN_PORT: port };
  });
  afterAll(() => void service.kill("SIGKILL"));

  /** Runs a command, which must succeed and print no error. */
  function run(words: string, input = ""): string {
    const { status, stdout, stderr } = spawnSync(node, [main(), ...words.split(" ")], {
      ...{ cwd: directory().path, env, input, encoding: "utf8" },
    });
    expect({ status, stderr }, words).toEqual({ status: 0, stderr: expect.not.stringMatching(/Error|Warning/) });
    return stdout;
  }

  test("users and sessions are found and ended", () => {
    const created = JSON.parse(run("sessions create --subject alice --json"));
    const { sessionId } = created.session;
    expect(run("sessions list")).toContain(sessionId);
    expect(run(`sessions show ${sessionId}`)).toContain("alice");
    expect(run("token inspect", created.accessToken)).toContain(sessionId);
    expect(run("token verify", created.refreshToken)).toMatch(/^accepted: refresh token/);
    expect(run(`sessions unbind ${sessionId}`)).toContain(sessionId);
    expect(run(`sessions end ${sessionId}`)).toContain("ended");
    expect(run("watch --once")).toContain(sessionId);
    run("sessions events --subject alice");
    expect(run("sessions end-all --subject alice")).toBe("ended 0 sessions of 1 user\n");
    expect(JSON.parse(run("subjects export --subject alice")).events).not.toHaveLength(0);
    expect(run("subjects forget --subject alice --yes")).toContain("forgot 1 user");
  });

  test("an installation is checked, backed up and restored", async () => {
    expect(run("config check")).toMatch(/^no fault; /);
    expect(run("config show --set")).toContain(dataDir);
    expect(run("keys list")).toContain("ES256");
    expect(run("doctor")).toMatch(/\n0 faults, 0 warnings\n$/);
    const backup = join(scratch(), "backup");
    expect(run(`backup ${backup}`)).toMatch(/^backed up to /);
    const exited = new Promise((resolve) => service.once("exit", resolve));
    service.kill("SIGINT");
    await exited;
    expect(run(`restore ${backup} --sessions end --force`)).toContain("every session of the backup is ended");
  });

  test("what a deployment needs is made", () => {
    const file = join(scratch(), "admins.json");
    expect(run(`admin-token create --name login --scope sessions:create --file ${file}`)).toMatch(/^token \(printed/);
    expect(JSON.parse(readFileSync(file, "utf8")).admins).toHaveLength(1);
    expect(run(`keys create --file ${join(scratch(), "keys.json")}`)).toMatch(/^created /);
    expect(run("redis-acl")).toMatch(/^user session-service on #[0-9a-f]{64} .*\+evalsha/);
    for (const shell of ["bash", "zsh", "fish"]) expect(run(`completion ${shell}`)).toContain("sessions");
  });
}
