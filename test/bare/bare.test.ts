/**
 * The commands of README.md on a machine that has a small Debian, git, an old Node and npm, and nothing else.
 *
 * The short form copies Debian and npm's cache from this machine, and stops `npm test` before it installs anything. The long form (`npm
 * run test:bare`) downloads both, runs the whole of `npm test`, and does everything as root, too, as who runs the short form does.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../support/free-port.ts";
import { type Program, whileRunning } from "../support/processes.ts";
import { request } from "../support/raw-http.ts";
import { cookie, logIn } from "../support/sessions.ts";
import { type Machine, makeMachine, nodeOlderThan, ORDINARY, ROOT, type User } from "./machine.ts";

const LONG = process.env.BARE === "long";
const USERS = LONG ? [ORDINARY, ROOT] : [ORDINARY];
const TIMEOUT_MS = LONG ? 7_200_000 : 900_000;
const README = readFileSync("README.md", "utf8");
const [RUN = "", TEST = ""] = README.match(/^npm ci && npm \w+$/gm) ?? [];
const NODE_24 = "node_modules/.toolchain/without-libatomic/bin";

type FirstStart = {
  readonly directory: string;
  readonly service: Program;
  readonly port: number;
  readonly adminPort: number;
};

/** Clones the repository as a user, and runs the first command of README.md. */
async function startFirst(machine: Machine, user: User): Promise<FirstStart> {
  const directory = await machine.clone(user);
  const [port, adminPort] = [await freePort(), await freePort()];
  const service = machine.start(user, directory, RUN, { PORT: String(port), ADMIN_PORT: String(adminPort) });
  return { directory, service, port, adminPort };
}

let machine: Machine;
const started = new Map<User, FirstStart>();
beforeAll(async () => {
  machine = await makeMachine(LONG, await nodeOlderThan(24));
  // npm uses only one core, so the installations of both users run at the same time.
  for (const user of USERS) started.set(user, await startFirst(machine, user));
}, TIMEOUT_MS);

afterAll(() => machine.remove(), TIMEOUT_MS);

test("README.md has the two commands", () => {
  expect([RUN, TEST]).toEqual(["npm ci && npm start", "npm ci && npm test"]);
});

describe.each(USERS)("$name", (user) => {
  const first = () => started.get(user) as FirstStart;
  const inClone = (path: string) => join(machine.root, first().directory, path);
  const run = async (command: string) => {
    const program = machine.start(user, first().directory, command);
    return { code: await program.exited, output: program.output() };
  };
  const version = () => run("npm run --silent session-service -- --version");

  test("`npm ci && npm start` runs the service, and npm warns of nothing", { timeout: TIMEOUT_MS }, async () => {
    const { service, port, adminPort } = first();
    await whileRunning(service, async () => expect(service.output()).toContain('"event":"ready"'));
    const adminToken = readFileSync(inClone("data/admin-token"), "utf8").trim();
    const { refreshToken } = await logIn({ adminUrl: `http://127.0.0.1:${adminPort}`, adminToken });
    const refresh = { method: "POST", path: "/v1/auth/refresh", headers: cookie(refreshToken) };
    expect((await request(`http://127.0.0.1:${port}`, refresh)).status).toBe(200);
    service.kill("SIGKILL");
    await service.exited;
    expect(service.output()).toMatch(/does not start here \(.*libatomic.*\): npm scripts run on v24\./);
    expect(service.output()).not.toMatch(/npm (warn|error)/i);
  });

  if (user === ORDINARY) {
    test("`npm test` says in one line what is missing, and installs nothing", { timeout: TIMEOUT_MS }, async () => {
      const { code, output } = await run("npm test --silent");
      expect(code).toBe(1);
      expect(output).toMatch(/^the tests need .*: install curl .*redis-server.* libatomic1 and run this again\n$/);
      expect(existsSync(inClone("test/dependencies/oldest-node/node_modules"))).toBe(false);
    });
  }

  test("scripts run on the machine's own Node where that is new enough", { timeout: TIMEOUT_MS }, async () => {
    const installed = await run(`PATH="$PWD/${NODE_24}:$PATH" sh test/toolchain/install.sh`);
    expect(installed).toEqual({
      code: 0,
      output: expect.stringMatching(/npm scripts run on the machine's own, v24\./),
    });
    expect(existsSync(inClone("node_modules/.bin/node"))).toBe(false);
    expect((await version()).code).not.toBe(0);
    expect((await run("sh test/toolchain/install.sh")).code).toBe(0);
    expect(await version()).toEqual({ code: 0, output: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
  });

  test("where no Node starts, one line says what to install", { timeout: TIMEOUT_MS }, async () => {
    writeFileSync(inClone(`${NODE_24}/node`), "#!/bin/sh\necho node: too old a kernel >&2\nexit 1\n");
    const { code, output } = await run("sh test/toolchain/install.sh");
    expect(code).toBe(1);
    expect(output).toMatch(
      /^The pinned Node .*libatomic.*\(too old a kernel\): install .*apt-get install libatomic1.*\n$/,
    );
  });

  if (LONG && user === ROOT) {
    test("`npm ci && npm test` passes", { timeout: TIMEOUT_MS }, async () => {
      const { code, output } = await run(TEST);
      expect([code, output.slice(-20_000)]).toEqual([0, expect.stringMatching(/ passed, 0 failed/)]);
    });
  }
});
