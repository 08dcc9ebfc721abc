// Compares the CPU time per request of the gateway, of the same HTTP layer inside the server process, of the built command with its default
// log and without one, and of a hand-written proxy (Fastify and grpc-js), all in front of one grpc-js server. Each runs in a separate
// process, and they are measured in turns. It also prints the memory of the command, at rest and after the load.
//
//     npm run bench:gateway [-- --json] [--baseline <folder>]
//
// `--baseline` adds the command of another build (a `dist/packages` folder).

import { type ChildProcess, execFileSync, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Client, credentials, Metadata, type ServiceDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import fastify from "fastify";
import { buildPackages } from "../../deploy/packages/build.ts";
import { createGrpcUpstream } from "../../src/connect-http-gateway/index.ts";
import { createHttpHandler } from "../../src/connect-http-routes/index.ts";
import { RelayServiceRoutes } from "../connect-http-routes/gen/relay/v1/relay_http.ts";
import { startGrpcServer } from "../connect-http-routes/support/grpc-server.ts";
import { relayRoutes } from "../connect-http-routes/support/relay-service.ts";
import { median } from "../support/median.ts";
import { machine, table } from "./machine.ts";
import { cpuTime, residentMemory } from "./refresh/proc.ts";

const ROLES = ["in process", "gateway", "fastify + grpc-js"] as const;
type Role = (typeof ROLES)[number];
const ROOT = join(import.meta.dirname, "../..");
/** How long a command rests before its memory is measured, in ms. It collects the garbage of its start meanwhile. */
const REST_MS = 45_000;
/** The gateway costs at most this share of what people write by hand. */
const LIMIT = 0.8;

type Server = { readonly child: ChildProcess; readonly port: number };

const [role, upstream] = process.argv.slice(2);
if (role === "upstream") {
  const server = await startGrpcServer();
  process.send?.(server.port);
} else if (ROLES.includes(role as Role)) process.send?.(await serve(role as Role, Number(upstream)));
else await measure();

async function serve(what: Role, port: number): Promise<number> {
  if (what === "fastify + grpc-js") return serveFastify(port);
  const tables = [RelayServiceRoutes];
  const transport = createGrpcUpstream({ baseUrl: `http://127.0.0.1:${port}` });
  const handler = createHttpHandler(what === "gateway" ? { tables, transport } : { tables, routes: relayRoutes() });
  const server = createServer(handler).listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** Starts a gateway as people write it by hand: one route, one call, and the metadata of the request. */
async function serveFastify(port: number): Promise<number> {
  const definition = loadSync("relay/v1/relay.proto", {
    includeDirs: [join(ROOT, "test/connect-http-routes/proto"), join(ROOT, "proto")],
    longs: String,
  });
  const { Get } = definition["relay.v1.RelayService"] as ServiceDefinition;
  if (Get === undefined) throw new Error("relay.proto has no RPC Get");
  const { path, requestSerialize, responseDeserialize } = Get;
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const app = fastify();
  app.post("/v1/items", (incoming, reply) => {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(incoming.headers)) {
      if (!/^(?:connection|host|content-.*|accept.*)$/.test(name)) metadata.set(name, String(value));
    }
    metadata.set("x-forwarded-for", incoming.ip);
    const options = { deadline: Date.now() + 30_000 };
    client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      incoming.body,
      metadata,
      options,
      (error, item) => {
        if (error === null) void reply.send(item);
        else void reply.status(500).send({ message: error.message });
      },
    );
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  return (app.server.address() as AddressInfo).port;
}

async function measure(): Promise<void> {
  const { values } = parseArgs({ options: { json: { type: "boolean" }, baseline: { type: "string" } } });
  buildPackages(["connect-http-gateway"]);
  const directory = mkdtempSync(join(tmpdir(), "bench-gateway-"));
  const descriptors = join(directory, "set.binpb");
  execFileSync("buf", ["build", join(ROOT, "test/connect-http-routes/proto"), "-o", descriptors]);
  const builds = { command: join(ROOT, "dist/packages"), ...(values.baseline && { baseline: values.baseline }) };
  const children: ChildProcess[] = [];
  const start = async (...args: string[]): Promise<Server> => {
    const child = fork(import.meta.filename, args);
    children.push(child);
    const [port] = (await once(child, "message")) as [number];
    return { child, port };
  };
  try {
    const { port } = await start("upstream");
    const servers = new Map<string, Server>();
    for (const what of ROLES) servers.set(what, await start(what, String(port)));
    const commands = new Set<string>();
    for (const [name, packages] of Object.entries(builds)) {
      linkLayer(packages);
      for (const log of ["all", "none"]) {
        const what = `${name}, --log ${log}`;
        const given = ["--descriptors", descriptors, "--upstream", `http://127.0.0.1:${port}`, "--log", log];
        const server = await startCommand(packages, given);
        children.push(server.child);
        servers.set(what, server);
        commands.add(what);
      }
    }
    await sleep(REST_MS);
    const memory = () => new Map([...commands].map((what) => [what, residentMemory(pidOf(servers.get(what)))]));
    const atRest = memory();
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    const costs = new Map<string, number[]>([...servers.keys()].map((what) => [what, []]));
    for (let round = 0; round < 15; round++) {
      for (const [what, server] of servers) {
        const before = cpuTime(pidOf(server)) ?? Number.NaN;
        await load(agent, server.port, 1_000);
        // The first rounds only warm up the servers, and are not counted.
        if (round >= 3) costs.get(what)?.push(((cpuTime(pidOf(server)) ?? Number.NaN) - before) * 1_000);
      }
    }
    report(new Map([...costs].map(([what, ms]) => [what, median(ms)])), { atRest, afterLoad: memory() }, values.json);
  } finally {
    for (const child of children) child.kill();
    rmSync(directory, { recursive: true });
  }
}

function pidOf(server: Server | undefined): number {
  return server?.child.pid ?? 0;
}

/** Installs the HTTP layer of a build for the command, which would load its sources otherwise. */
function linkLayer(packages: string): void {
  const modules = join(packages, "connect-http-gateway/node_modules");
  rmSync(modules, { recursive: true, force: true });
  mkdirSync(modules);
  symlinkSync(join(packages, "connect-http-routes"), join(modules, "connect-http-routes"));
}

/** Starts the command of a build. A pipe takes its log, as that of a container does. */
async function startCommand(packages: string, args: readonly string[]): Promise<Server> {
  const main = join(packages, "connect-http-gateway/src/connect-http-gateway/main.js");
  const child = spawn(process.execPath, [main, "--listen", "127.0.0.1:0", ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ready = Promise.withResolvers<number>();
  createInterface(child.stdout).on("line", (line) => {
    if (line.includes('"listening"')) ready.resolve(JSON.parse(line).port);
  });
  return { child, port: await ready.promise };
}

async function load(agent: Agent, port: number, count: number): Promise<void> {
  let left = count;
  const body = JSON.stringify({ name: "shelves/1/books/2", number: "9007199254740993", tags: ["a", "b"] });
  const headers = { "content-type": "application/json", authorization: "Bearer token", "content-length": body.length };
  const one = () =>
    new Promise<void>((resolve, reject) => {
      const call = request(
        { agent, port, host: "127.0.0.1", method: "POST", path: "/v1/items", headers },
        (response) => {
          if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`));
          response.resume().on("end", resolve);
        },
      );
      call.on("error", reject);
      call.end(body);
    });
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      while (left-- > 0) await one();
    }),
  );
}

type Memory = ReadonlyMap<string, number | undefined>;

function report(
  costs: ReadonlyMap<string, number>,
  { atRest, afterLoad }: { readonly atRest: Memory; readonly afterLoad: Memory },
  json = false,
): void {
  const byHand = costs.get("fastify + grpc-js") ?? Number.NaN;
  const ratio = (costs.get("gateway") ?? 0) / byHand;
  if (json) {
    const rows = [...costs].map(([what, ms]) => ({ what, microsecondsPerRequest: Math.round(ms) }));
    console.log(JSON.stringify({ rows, ratio }));
  } else {
    const rows = [...costs].map(([what, ms]) => [
      what,
      ...[ms.toFixed(0), (ms / byHand).toFixed(2)],
      ...[atRest, afterLoad].map((memory) => memory.get(what)?.toFixed(0) ?? ""),
    ]);
    console.log(table(["", "CPU of a call, µs", "of Fastify and grpc-js", "MiB at rest", "MiB after the load"], rows));
    console.log(`\n${machine()}`);
  }
  if (ratio > LIMIT) process.exitCode = 1;
}
