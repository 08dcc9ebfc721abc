/** `examples/next`: built and started by Next.js, with the packed packages, with proxies that count and fail. */
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

const FRAMEWORKS = join(import.meta.dirname, "../frameworks");
const NEXT = join(FRAMEWORKS, "node_modules/next/dist/bin/next");
const run = promisify(execFile);

/** A proxy in front of `target`, which counts refreshes and fails as tests want. */
export async function startRelay(target: string) {
  const relay = {
    url: "",
    refreshes: 0,
    /** The refresh tokens that responses have set: one for each rotation. */
    tokens: new Set<string>(),
    isDown: false,
    /** How late a response is, ms; undefined for one that is lost. */
    delayMs: (): number | undefined => 0,
    close: () => {},
  };
  const server = createServer((request, response) => {
    if (request.url === "/v1/auth/refresh") relay.refreshes++;
    if (relay.isDown) {
      response.writeHead(503).end('{"error":{"code":"E503_UNAVAILABLE"}}');
      return;
    }
    const { method, headers } = request;
    const onward = send(new URL(request.url ?? "/", target), { method, headers });
    onward.on("response", (reply) => {
      const [, token] = /\brefresh_token=([^;]+)/.exec(String(reply.headers["set-cookie"])) ?? [];
      if (token) relay.tokens.add(token);
      const delayMs = relay.delayMs();
      if (delayMs === undefined) response.destroy();
      else setTimeout(() => reply.pipe(response.writeHead(reply.statusCode ?? 502, reply.rawHeaders)), delayMs);
    });
    onward.on("error", () => response.destroy());
    request.pipe(onward);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  relay.url = `http://localhost:${(server.address() as AddressInfo).port}`;
  relay.close = () => server.close().closeAllConnections();
  return relay;
}

/** Builds the application below `test/frameworks`, where its bundler finds the framework. */
export async function buildApplication(): Promise<{ readonly path: string; remove(): void }> {
  const packages = join(process.cwd(), "dist/next");
  buildPackages(["server-kit", "verifier", "browser"], packages);
  mkdirSync(join(FRAMEWORKS, "out"), { recursive: true });
  const path = mkdtempSync(join(FRAMEWORKS, "out/next-"));
  cpSync("examples/next", path, { recursive: true });
  for (const [folder, name] of [
    ["server-kit", "server"],
    ["verifier", "verifier"],
    ["browser", "browser"],
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
