/** `examples/next`: built and started by Next.js, with the packed packages, in front of a proxy that counts and fails. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, request as send } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { buildPackages } from "../../deploy/packages/build.ts";
import { freePort } from "../support/free-port.ts";
import { startProgram, whileRunning } from "../support/processes.ts";
import type { Service } from "../support/service.ts";

const FRAMEWORKS = join(import.meta.dirname, "../frameworks");
const NEXT = join(FRAMEWORKS, "node_modules/next/dist/bin/next");
const run = promisify(execFile);

/** Between the application and the service. */
export async function startCounter(service: Service) {
  const counter = { refreshes: 0, isDown: false, delayMs: () => 0, url: "", close: () => {} };
  const server = createServer((request, response) => {
    const pass = () => {
      const onward = send(new URL(request.url ?? "/", service.publicUrl), {
        method: request.method,
        headers: request.headers,
      });
      onward.on("response", (reply) => {
        const relay = () => reply.pipe(response.writeHead(reply.statusCode ?? 502, reply.rawHeaders));
        setTimeout(relay, counter.delayMs());
      });
      onward.on("error", () => response.destroy());
      request.pipe(onward);
    };
    if (request.url === "/v1/auth/refresh") counter.refreshes++;
    if (counter.isDown) response.writeHead(503).end('{"error":{"code":"E503_UNAVAILABLE"}}');
    else pass();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  counter.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  counter.close = () => server.close().closeAllConnections();
  return counter;
}

/** Builds the application below `test/frameworks`, where its bundler finds the framework. */
export async function buildApplication(): Promise<{ readonly path: string; remove(): void }> {
  const packages = join(process.cwd(), "dist/next");
  buildPackages(["server-kit", "verifier"], packages);
  mkdirSync(join(FRAMEWORKS, "out"), { recursive: true });
  const path = mkdtempSync(join(FRAMEWORKS, "out/next-"));
  cpSync("examples/next", path, { recursive: true });
  for (const [folder, name] of [
    ["server-kit", "server"],
    ["verifier", "verifier"],
  ] as const) {
    cpSync(join(packages, folder), join(path, "node_modules/@session-service", name), { recursive: true });
  }
  const env = { ...process.env, NODE_ENV: "production" as const, NEXT_TELEMETRY_DISABLED: "1" };
  await run(process.execPath, [NEXT, "build"], { cwd: path, env });
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

export async function startApplication(path: string, env: Readonly<Record<string, string>>) {
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const args = [NEXT, "start", "--port", String(port), "--hostname", "localhost"];
  const program = startProgram(process.execPath, args, {
    cwd: path,
    env: { PATH: process.env.PATH ?? "", NODE_ENV: "production", NEXT_TELEMETRY_DISABLED: "1", ...env },
  });
  await whileRunning(program, () => fetch(url));
  return { url, program };
}
