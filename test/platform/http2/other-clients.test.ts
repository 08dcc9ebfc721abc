/** The clients of the gateway, the command line and the telemetry exporter: a network fault only fails calls, and throws nowhere else. */
import { once } from "node:events";
import { createServer as createHttp1 } from "node:http";
import { createServer as createHttp2 } from "node:http2";
import type { AddressInfo } from "node:net";
import { createClient, type Transport } from "@connectrpc/connect";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { SessionAdminService } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { parseArguments } from "../../../src/connect-http-gateway/arguments.ts";
import { createUpstream } from "../../../src/connect-http-gateway/upstream.ts";
import { openAdminApi } from "../../../src/service/cli/admin-api/client.ts";
import { type FaultyProxy, startFaultyProxy } from "../../support/faulty-proxy.ts";

/** How many random sequences of network faults the test tries. With HOLDS=long there are more. */
const RUNS = process.env.HOLDS === "long" ? 500 : 40;
/**
 * How long a call may take, in ms. The test only checks that no error is thrown outside of a call, so it does not matter whether the call
 * succeeds.
 */
const CALL_TIMEOUT_MS = 200;

type Client = {
  call(): Promise<unknown>;
  close?(): void;
};

const overTransport = (transport: Transport, close?: () => void): Client => {
  const client = createClient(SessionAdminService, transport);
  const watch = async () => {
    for await (const _ of client.watchRevocations({}, { timeoutMs: CALL_TIMEOUT_MS }));
  };
  return {
    call: () => Promise.allSettled([client.getSession({}, { timeoutMs: CALL_TIMEOUT_MS }), watch()]),
    ...(close && { close }),
  };
};

const gateway =
  (...options: string[]) =>
  async (url: string): Promise<Client> => {
    const pings = ["--ping-interval-ms", "20"];
    const args = ["--upstream", url, "--descriptors", "none", ...pings, ...options];
    const { transport, close } = createUpstream(parseArguments(args), () => {});
    return overTransport(transport, close);
  };

function commandLine(url: string): Client {
  const { client } = openAdminApi({ ADMIN_TOKEN: "a".repeat(40) }, { url });
  return { call: () => client.getSession({}, { timeoutMs: CALL_TIMEOUT_MS }) };
}

function exporter(url: string): Client {
  const exports = new OTLPTraceExporter({ url: `${url}/v1/traces`, timeoutMillis: CALL_TIMEOUT_MS });
  return { call: () => new Promise((resolve) => exports.export([], resolve)) };
}

const CLIENTS: readonly (readonly [
  name: string,
  http: "1.1" | "2",
  open: (url: string) => Client | Promise<Client>,
])[] = [
  ["the gateway, gRPC", "2", gateway("--protocol", "grpc")],
  ["the gateway, gRPC-Web", "2", gateway("--protocol", "grpc-web")],
  ["the gateway, Connect", "2", gateway("--protocol", "connect")],
  ["the gateway, Connect over HTTP/1.1", "1.1", gateway("--protocol", "connect", "--upstream-http", "1.1")],
  ["the gateway, gRPC-Web over HTTP/1.1", "1.1", gateway("--protocol", "grpc-web", "--upstream-http", "1.1")],
  ["the command line", "1.1", commandLine],
  ["the exporter of telemetry", "1.1", exporter],
];

/** Starts a server that sends each response in two parts, in different turns of the event loop. */
async function startServer(version: "1.1" | "2"): Promise<number> {
  const respond = (response: { writeHead(status: number): unknown; write(text: string): unknown; end(): unknown }) => {
    response.writeHead(200);
    response.write("{");
    setImmediate(() => response.end());
  };
  const server =
    version === "2"
      ? createHttp2((_, response) => respond(response)).on("sessionError", () => {})
      : createHttp1((_, response) => respond(response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

const FAULTS = ["hold", "release", "reset", "end"] as const;
const STEPS = ["call", "call", "turn", ...FAULTS, "garbage"] as const;

function fail(proxy: FaultyProxy, step: (typeof STEPS)[number]): void {
  if (step === "garbage") proxy.inject(Buffer.from("HTTP/1.1 200 OK\r\n\r\n\0\0\0"));
  for (const fault of FAULTS) if (fault === step) proxy[fault]();
}

test.each(CLIENTS)("%s", async (_, version, open) => {
  const port = await startServer(version);
  const thrown: unknown[] = [];
  const note = (error: unknown) => void thrown.push(error);
  process.on("uncaughtExceptionMonitor", note);
  onTestFinished(() => void process.off("uncaughtExceptionMonitor", note));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...STEPS), { minLength: 3, maxLength: 12 }), async (steps) => {
      const proxy = await startFaultyProxy(port);
      const client = await open(`http://127.0.0.1:${proxy.port}`);
      const calls: Promise<unknown>[] = [];
      for (const step of steps) {
        if (step === "call") calls.push(Promise.allSettled([client.call()]));
        else fail(proxy, step);
        await new Promise(setImmediate);
      }
      await Promise.all(calls);
      client.close?.();
      await proxy.stop();
      expect(thrown).toEqual([]);
    }),
    { numRuns: RUNS },
  );
});
