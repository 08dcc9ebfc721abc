/** The applications of `examples`: built and started by their frameworks, with the packed packages. */
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "../support/free-port.ts";
import { builtPackages } from "../support/packages.ts";
import { startProgram, whileRunning } from "../support/processes.ts";

const FRAMEWORKS = join(import.meta.dirname, "../dependencies/frameworks");
const NEXT = join(FRAMEWORKS, "node_modules/next/dist/bin/next");
const VITE = join(FRAMEWORKS, "node_modules/vite/bin/vite.js");
const ENV = { NODE_ENV: "production", NEXT_TELEMETRY_DISABLED: "1" } as const;
const run = promisify(execFile);

type Framework = {
  readonly build: readonly string[];
  readonly start: (port: number) => readonly string[];
};
const FRAMEWORK = {
  next: {
    build: [NEXT, "build"],
    start: (port) => [NEXT, "start", "--port", String(port), "--hostname", "localhost"],
  },
  sveltekit: { build: [VITE, "build"], start: () => ["build"] },
} as const satisfies Readonly<Record<string, Framework>>;
export type FrameworkName = keyof typeof FRAMEWORK;

export type Built = { readonly framework: FrameworkName; readonly path: string; remove(): void };

/** The packages that an application has, by their folders, which are also their names. */
const PACKAGES = ["server", "verifier", "browser"];

/**
 * Builds an application below `test/dependencies/frameworks`, where its bundler finds the framework.
 * @param env variables for the build
 * @param source the application. Default: that of `examples`, with the pages of `fixtures`
 */
export async function buildApplication(
  framework: FrameworkName,
  env: Readonly<Record<string, string>> = {},
  source = `examples/${framework}`,
): Promise<Built> {
  const packages = await builtPackages(PACKAGES);
  mkdirSync(join(FRAMEWORKS, "out"), { recursive: true });
  const path = mkdtempSync(join(FRAMEWORKS, `out/${framework}-`));
  cpSync(source, path, { recursive: true });
  if (source.startsWith("examples/"))
    cpSync(join(import.meta.dirname, "fixtures", framework), path, { recursive: true });
  for (const name of PACKAGES)
    cpSync(join(packages, name), join(path, "node_modules/@session-service", name), { recursive: true });
  await run(process.execPath, [...FRAMEWORK[framework].build], { cwd: path, env: { ...process.env, ...ENV, ...env } });
  return { framework, path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

export async function startApplication(
  { framework, path }: Built,
  env: Readonly<Record<string, string>>,
  ownPort?: number,
) {
  const port = ownPort ?? (await freePort());
  const url = `http://localhost:${port}`;
  const program = startProgram(process.execPath, FRAMEWORK[framework].start(port), {
    cwd: path,
    env: { PATH: process.env.PATH ?? "", HOST: "localhost", PORT: String(port), ...ENV, ...env },
  });
  await whileRunning(program, () => fetch(url));
  return { url, program };
}
