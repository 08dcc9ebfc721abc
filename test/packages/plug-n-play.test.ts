/** The packages in a project of Yarn's Plug'n'Play, which has no node_modules, finds only declared dependencies, and replaces `node:fs`. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { closure, readManifest as readInstalled } from "../../deploy/container/assemble.ts";
import { packageNames, readManifest } from "../../deploy/packages/build.ts";
import { builtPackages, packed } from "../support/packages.ts";
import { inTime } from "../support/until.ts";
import { type Directory, installPacked } from "./install.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const YARN = join(ROOT, "test/dependencies/tools/node_modules/@yarnpkg/cli-dist/bin/yarn.js");
const REACT = "node_modules/react";

let project: Directory;
beforeAll(async () => {
  const built = await builtPackages();
  project = await installPacked([]);
  const own: Record<string, string> = {};
  // An optional peer of the browser kit, which its entry point `./react` needs.
  const others: Record<string, string> = { react: `portal:${join(ROOT, REACT)}` };
  for (const folder of packageNames()) {
    const manifest = readManifest(folder);
    own[manifest.name] = `file:${packed(folder)}`;
    for (const directory of closure(readInstalled(join(built, folder)), ROOT)) {
      others[readInstalled(directory).name] = `portal:${directory}`;
    }
  }
  const dependencies = { ...others, ...own };
  await project.write({
    "package.json": JSON.stringify({ name: "project", type: "module", dependencies, resolutions: dependencies }),
    ".yarnrc.yml": "nodeLinker: pnp\nenableNetwork: false\nenableGlobalCache: false\nenableTelemetry: false\n",
    "yarn.lock": "",
  });
  await project.run("node", [YARN, "install"]);
});
afterAll(() => project.remove());

test("every entry point of every library is found", async () => {
  const names = packageNames().flatMap((folder) => {
    const { name, exports = {} } = readManifest(folder);
    return Object.keys(exports).map((entry) => name + entry.slice(1));
  });
  expect(names.length).toBeGreaterThan(20);
  const imports = `for (const name of ${JSON.stringify(names)}) await import(name).catch((error) => console.log(name, error.message))`;
  const { stdout } = await project.run("node", [YARN, "node", "--input-type=module", "-e", imports]);
  expect(stdout).toBe("");
});

test("the service starts on its embedded store", async () => {
  const service = spawn(process.execPath, [YARN, "session-service"], {
    cwd: project.path,
    env: {
      PATH: process.env.PATH,
      HOME: project.path,
      PORT: "0",
      ADMIN_PORT: "0",
      DATA_DIR: join(project.path, "data"),
    },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const exited = once(service, "exit");
  onTestFinished(async () => {
    if (service.exitCode === null) process.kill(-(service.pid ?? 0), "SIGKILL");
    await exited;
  });
  let stderr = "";
  service.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const ready = once(createInterface({ input: service.stdout }), "line");
  const [line] = await inTime(
    () => `the ready line; stderr: ${stderr}`,
    Promise.race([ready, exited.then(() => [stderr])]),
  );
  const { public: url } = JSON.parse(String(line)) as { public: string };
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
});
