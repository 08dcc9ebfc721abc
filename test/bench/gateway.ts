// Compares the CPU time per request of the gateway, of the same HTTP layer inside the server process, and of a hand-written proxy
// (Fastify and grpc-js), all in front of one grpc-js server. Each runs in a separate process, and they are measured in turns.
//
//     npm run bench:gateway [-- --json]

import { fork } from "node:child_process";
import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Client, credentials, Metadata, type ServiceDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import fastify from "fastify";
import { createGrpcUpstream } from "../../src/connect-http-gateway/index.ts";
import { createHttpHandler } from "../../src/connect-http-routes/index.ts";
import { RelayServiceRoutes } from "../connect-http-routes/gen/relay/v1/relay_http.ts";
import { startGrpcServer } from "../connect-http-routes/support/grpc-server.ts";
import { relayRoutes } from "../connect-http-routes/support/relay-service.ts";
import { median } from "../support/median.ts";

const ROLES = ["in process", "gateway", "fastify + grpc-js"] as const;
type Role = (typeof ROLES)[number];

const [role, upstream] = process.argv.slice(2);
if (role === "upstream") {
  const server = await startGrpcServer();
  process.send?.(server.port);
} else if (ROLES.includes(role as Role)) {
  process.send?.(await serve(role as Role, Number(upstream)));
  process.on("message", () => process.send?.(process.cpuUsage()));
} else await measure();

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
  const root = join(import.meta.dirname, "../..");
  const definition = loadSync("relay/v1/relay.proto", {
    includeDirs: [join(root, "test/connect-http-routes/proto"), join(root, "proto")],
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
  const children: ReturnType<typeof fork>[] = [];
  const start = async (...args: string[]) => {
    const child = fork(import.meta.filename, args);
    children.push(child);
    const [port] = (await once(child, "message")) as [number];
    return { child, port };
  };
  try {
    const backend = await start("upstream");
    const servers = new Map<Role, Awaited<ReturnType<typeof start>>>();
    for (const what of ROLES) servers.set(what, await start(what, String(backend.port)));
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    const costs = new Map<Role, number[]>(ROLES.map((what) => [what, []]));
    for (let round = 0; round < 12; round++) {
      for (const what of ROLES) {
        const { child, port } = servers.get(what) as { child: (typeof children)[number]; port: number };
        const before = await cpuMs(child);
        await load(agent, port, 1_000);
        // The first rounds only warm up the servers, and are not counted.
        if (round >= 3) costs.get(what)?.push((await cpuMs(child)) - before);
      }
    }
    report(new Map([...costs].map(([what, values]) => [what, median(values)])));
  } finally {
    for (const child of children) child.kill();
  }
}

async function cpuMs(child: ReturnType<typeof fork>): Promise<number> {
  const reply = once(child, "message") as Promise<[NodeJS.CpuUsage]>;
  child.send("cpu");
  const [{ user, system }] = await reply;
  return (user + system) / 1000;
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

function report(costs: ReadonlyMap<Role, number>): void {
  const rows = [...costs].map(([what, ms]) => ({ what, microsecondsPerRequest: Math.round(ms) }));
  const ratio = (costs.get("gateway") ?? 0) / (costs.get("fastify + grpc-js") ?? 1);
  if (process.argv.includes("--json")) console.log(JSON.stringify({ rows, ratio }));
  else {
    for (const { what, microsecondsPerRequest } of rows) {
      console.log(`${what.padEnd(20)} ${microsecondsPerRequest} µs of CPU per request`);
    }
    console.log(`gateway / (fastify + grpc-js): ${ratio.toFixed(2)} (limit 0.80)`);
  }
  if (ratio > 0.8) process.exitCode = 1;
}
