/** An application of Next.js whose App Router serves the routes, built with the packed package. */
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "../../support/free-port.ts";
import { builtPackages } from "../../support/packages.ts";
import { startProgram, whileRunning } from "../../support/processes.ts";
import type { Running } from "./frameworks.ts";

const HERE = import.meta.dirname;
const FRAMEWORKS = join(HERE, "../../dependencies/frameworks");
const NEXT = join(FRAMEWORKS, "node_modules/next/dist/bin/next");
const ENV = { NODE_ENV: "production", NEXT_TELEMETRY_DISABLED: "1", PATH: process.env.PATH ?? "" } as const;

export async function next(): Promise<Running> {
  mkdirSync(join(FRAMEWORKS, "out"), { recursive: true });
  // The bundler finds Next.js only in a folder above.
  const path = mkdtempSync(join(FRAMEWORKS, "out/routes-"));
  const packages = await builtPackages(["connect-http-routes"]);
  cpSync(join(HERE, "next"), path, { recursive: true });
  cpSync(join(packages, "connect-http-routes"), join(path, "node_modules/connect-http-routes"), { recursive: true });
  cpSync(join(HERE, "../gen"), join(path, "gen"), { recursive: true });
  const service = readFileSync(join(HERE, "../support/rich-service.ts"), "utf8");
  mkdirSync(join(path, "support"));
  writeFileSync(
    join(path, "support/rich-service.ts"),
    service.replace(/"[./]*\/src\/connect-http-routes\/index\.ts"/, '"connect-http-routes"'),
  );
  await promisify(execFile)(process.execPath, [NEXT, "build"], { cwd: path, env: ENV });
  const port = await freePort();
  const program = startProgram(process.execPath, [NEXT, "start", "--port", String(port), "--hostname", "127.0.0.1"], {
    cwd: path,
    env: ENV,
  });
  await whileRunning(program, () => fetch(`http://127.0.0.1:${port}/own`));
  return {
    port,
    async close() {
      await program.stop();
      rmSync(path, { recursive: true, force: true });
    },
  };
}
