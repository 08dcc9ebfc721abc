/**
 * The published packages with the newest dependencies that their ranges allow, as npm installs them today. All other tests
 * run on the other end of the ranges, which the lock file has.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { buildPackages, packageNames } from "../../deploy/packages/build.ts";
import { scratch } from "../support/service.ts";
import { installScript } from "./installed.ts";

const OUT = resolve(import.meta.dirname, "../../dist/newest");
const TIMEOUT_MS = 600_000;
/** Peers of the packages, which their users have. */
const PEERS = ["@opentelemetry/api", "react"];

/** What a consumer of a package does first. Prints "works". */
const FIRST_USE: Readonly<Record<string, string>> = {
  browser: `
    const { createSession } = await import("@session-service/browser");
    await import("@session-service/browser/device");
    if (typeof createSession !== "function") throw new Error("no createSession");`,
  "grpc-health": `
    import { Health } from "connect-grpc-health";
    new Health({ services: [], probe: async () => {} });`,
  "grpc-reflection": `
    import { addReflection } from "connect-grpc-reflection";
    import { createConnectRouter } from "@connectrpc/connect";
    addReflection(createConnectRouter());`,
  http: `
    import { createHttpHandler } from "@session-service/http";
    await import("@session-service/http/client");
    await import("@session-service/http/gateway");
    createHttpHandler({ routes() {}, tables: [] });`,
  opentelemetry: `await import("connect-opentelemetry");`,
  service: `
    import { execFileSync } from "node:child_process";
    const checked = execFileSync("node_modules/.bin/session-service", ["config", "check"], { encoding: "utf8" });
    if (!checked.startsWith("no fault")) throw new Error(checked);`,
  verifier: `
    import { createVerifier } from "@session-service/verifier";
    if (typeof createVerifier !== "function") throw new Error("no createVerifier");`,
};

test("every package has a first use", () => {
  expect(Object.keys(FIRST_USE)).toEqual([...packageNames()].sort());
});

/** The directories of all packages below a `node_modules`. */
function installedBelow(modules: string): string[] {
  if (!existsSync(modules)) return [];
  const names = readdirSync(modules).flatMap((name) =>
    name.startsWith("@") ? readdirSync(join(modules, name)).map((inner) => join(name, inner)) : [name],
  );
  const packages = names.map((name) => join(modules, name)).filter((path) => existsSync(join(path, "package.json")));
  return packages.flatMap((path) => [path, ...installedBelow(join(path, "node_modules"))]);
}

describe.runIf(process.env.PACKAGES === "long")("with the newest dependencies", () => {
  beforeAll(() => buildPackages(packageNames(), OUT));

  test.each(packageNames())("%s installs without a script, and works", { timeout: TIMEOUT_MS }, (folder) => {
    const directory = scratch();
    const run = (command: string, ...args: string[]) =>
      execFileSync(command, args, { cwd: directory, encoding: "utf8" });
    writeFileSync(join(directory, "package.json"), '{"type":"module"}');
    const file = run("npm", "pack", "--silent", join(OUT, folder)).trim().split("\n").at(-1) as string;
    run("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", `./${file}`, ...PEERS);
    const installed = installedBelow(join(directory, "node_modules"));
    expect(installed.length).toBeGreaterThan(PEERS.length);
    expect(installed.flatMap((path) => installScript(path) ?? [])).toEqual([]);
    writeFileSync(join(directory, "use.js"), `${FIRST_USE[folder]}\nconsole.log("works");`);
    expect(run(process.execPath, "use.js")).toBe("works\n");
  });
});
