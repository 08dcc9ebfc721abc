/** Random requests to both listeners over every protocol never cause a failure of the service, and other clients are served meanwhile. */
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Service } from "../support/service.ts";
import { expectWithinBounds, LONG, report, startVictimAndControl, underAttack } from "./victim.ts";

const REQUESTS = LONG ? 200_000 : 2_000;
const WORKERS = 8;

let service: Service;
beforeAll(async () => {
  service = await startVictimAndControl();
});
afterAll(async () => {
  await service.stop();
  expect(service.stderr()).not.toMatch(/"event":"(bug|uncaught_exception)"/);
  process.stdout.write(`${report()}\n`);
});

const PATHS = [
  "/v1/auth/refresh",
  "/v1/auth/logout",
  "/v1/auth/sessions",
  "/v1/auth/sessions/x",
  "/v1/auth/sessions:revokeOthers",
  "/auth.v1.SessionService/Refresh",
  "/auth.v1.SessionService/Logout",
  "/auth.v1.SessionService/ListSessions",
  "/auth.admin.v1.SessionAdminService/CreateSession",
  "/auth.admin.v1.SessionAdminService/IntrospectToken",
  "/auth.admin.v1.SessionAdminService/RevokeSession",
  "/auth.admin.v1.SessionAdminService/UpdateSession",
  "/v1/sessions/x",
  "/v1/subjects/a%2Fb/sessions",
  "/v1/oauth/token",
  "/auth.v1.OAuthService/GrantToken",
  "/healthz",
  "/readyz",
  "/docs",
  "/openapi.json",
  "/.well-known/jwks.json",
  "/metrics",
];
const NAMES = [
  ...[
    "cookie",
    "authorization",
    "origin",
    "sec-fetch-site",
    "content-type",
    "content-encoding",
    "accept",
    "accept-encoding",
  ],
  ...[
    "grpc-timeout",
    "grpc-encoding",
    "connect-timeout-ms",
    "connect-protocol-version",
    "te",
    "x-forwarded-for",
    "range",
  ],
  ...["x-http-method-override", "expect", "if-none-match", "access-control-request-method"],
];
const VALUES = [
  ...[
    "refresh_token=",
    "refresh_token=x; refresh_token=y",
    "Bearer ",
    "Bearer a.b.c",
    "Basic eA==",
    "null",
    "cross-site",
    "gzip",
    "br",
    "*/*",
  ],
  ...[
    "0",
    "-1",
    "1n",
    "99999999H",
    "1e9",
    "NaN",
    "100-continue",
    "trailers",
    "application/json;charset=",
    "application/grpc",
    "%00",
  ],
];
const TYPES = [
  "json",
  "proto",
  "grpc",
  "grpc+json",
  "grpc+proto",
  "grpc-web",
  "grpc-web+proto",
  "grpc-web-text",
  "connect+json",
  "connect+proto",
];
const BODIES = [
  "",
  "{}",
  "{",
  "[]",
  '{"a":1e400}',
  '{"subject":"\\ud800"}',
  '{"pageSize":-1}',
  "\0\0\0\0\0",
  "\x01\0\0\0\x02{}",
  "\0\xff\xff\xff\xff",
  "\x1f\x8b\x08",
];

type Fuzzed = {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer;
};

const token = fc.oneof(
  fc.constantFrom(...VALUES),
  fc.string({ unit: "binary", maxLength: 24 }).map((text) => text.replace(/[^\x20-\x7e\x80-\xff]/g, "")),
);
const fuzzed: fc.Arbitrary<Fuzzed> = fc.record({
  method: fc.constantFrom("GET", "POST", "POST", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"),
  path: fc
    .tuple(
      fc.constantFrom(...PATHS),
      fc.constantFrom(
        "",
        "",
        "?",
        "?pageSize=%zz",
        "?connect=v1&encoding=json&message=%7b",
        "/%2e%2e",
        "%00",
        "?a=%ff",
      ),
    )
    .map(([path, more]) => path + more),
  headers: fc
    .tuple(
      fc.constantFrom(...TYPES).map((type) => ["content-type", `application/${type}`] as const),
      fc.uniqueArray(
        fc.tuple(fc.constantFrom(...NAMES.filter((name) => name !== "content-type" && name !== "expect")), token),
        { maxLength: 4, selector: ([name]) => name },
      ),
    )
    .map(([type, others]) => [type, ...others]),
  body: fc.oneof(
    fc.constantFrom(...BODIES).map((text) => Buffer.from(text, "latin1")),
    fc.uint8Array({ maxLength: 48 }).map((bytes) => Buffer.from(bytes)),
  ),
});

/** Sends requests over one connection, which is opened again when the service has closed it. */
function overHttp1(url: string) {
  const { hostname, port } = new URL(url);
  let socket: Socket | undefined;
  return async ({ method, path, headers, body }: Fuzzed): Promise<number> => {
    if (socket === undefined || socket.destroyed) {
      socket = connect(Number(port), hostname);
      socket.on("error", () => {});
    }
    const used = socket;
    const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    used.write(
      Buffer.from(`${method} ${path} HTTP/1.1\r\nHost: x\r\n${lines}Content-Length: ${body.length}\r\n\r\n`, "latin1"),
    );
    used.write(body);
    return new Promise((resolve) => {
      let received = "";
      const settle = (status: number) => {
        used.off("data", onData).off("close", onClose);
        resolve(status);
      };
      const onClose = () => settle(Number(/^HTTP\/1\.1 (\d+)/.exec(received)?.[1] ?? 0));
      const onData = (chunk: Buffer) => {
        received += chunk.toString("latin1");
        const end = received.indexOf("\r\n\r\n");
        if (end < 0) return;
        const head = received.slice(0, end);
        const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
        const status = Number(head.slice(9, 12));
        const isWhole = /transfer-encoding: chunked/i.test(head)
          ? received.includes("0\r\n", end) && received.endsWith("\r\n\r\n")
          : method === "HEAD" || status === 204 || received.length >= end + 4 + length;
        if (isWhole) settle(status);
      };
      used.on("data", onData).on("close", onClose);
    });
  };
}

function overHttp2(url: string) {
  let session: ClientHttp2Session | undefined;
  return async ({ method, path, headers, body }: Fuzzed): Promise<number> => {
    if (session === undefined || session.closed || session.destroyed) {
      session = connectHttp2(url);
      session.on("error", () => {});
    }
    try {
      const fields = Object.fromEntries(headers.filter(([name]) => name !== "te"));
      // `endStream: false` lets every request have a body. By default Node ends a GET with its headers.
      const stream = session.request({ ...fields, ":method": method, ":path": path }, { endStream: false });
      stream.on("error", () => {});
      stream.end(body);
      const status = new Promise<number>((resolve) => {
        stream.once("response", (head) => resolve(Number(head[":status"]))).once("close", () => resolve(0));
      });
      stream.resume();
      await new Promise((resolve) => stream.once("close", resolve));
      return await status;
    } catch {
      return 0; // Node's HTTP/2 client refused to send the request.
    }
  };
}

test(`${REQUESTS} requests at random get no failure of ours`, { timeout: 3_600_000 }, async () => {
  const seed = Number(process.env.FUZZ_SEED ?? 20_261_121);
  const row = await underAttack(service, "fuzzed requests", `${REQUESTS}, seed ${seed}`, async ({ saw }) => {
    await Promise.all(
      Array.from({ length: WORKERS }, async (_, worker) => {
        const url = worker % 4 === 3 ? service.adminUrl : service.publicUrl;
        const ask = worker % 2 === 0 ? overHttp1(url) : overHttp2(url);
        // The requests are generated in portions of at most 500, because all requests of a portion are in memory at once.
        for (let done = 0, portion = 0; done < REQUESTS / WORKERS; portion++) {
          const numRuns = Math.min(500, REQUESTS / WORKERS - done);
          for (const one of fc.sample(fuzzed, { numRuns, seed: seed + worker * 100_000 + portion })) {
            const status = await ask(one);
            saw(status);
            if (status >= 500 && status !== 504)
              expect.soft({ status, ...one, body: one.body.toString("latin1") }).toBeUndefined();
          }
          done += numRuns;
        }
      }),
    );
  });
  expectWithinBounds(row, 250);
});
