/** Attacks on memory, sockets and time. docs/reference/limits.md has the bounds, and what was measured. */
import { once } from "node:events";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { request } from "../support/raw-http.ts";
import type { Service } from "../support/service.ts";
import { cookie, logIn } from "../support/sessions.ts";
import { END_HEADERS, END_STREAM, FRAME, frame, PREFACE, requestBlock, settings } from "./frames.ts";
import {
  closed,
  expectWithinBounds,
  LONG,
  report,
  rows,
  startVictimAndControl,
  underAttack,
  written,
} from "./victim.ts";

const times = LONG ? 10 : 1;

const BUNDLE = "/docs/swagger-ui-bundle.js";
const GET = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

let service: Service;
beforeAll(async () => {
  service = await startVictimAndControl({ REQUEST_TIMEOUT: "2s" });
  // The first requests load and compile the code. They come before the measurement, so that this memory does not count as growth.
  for (let i = 0; i < 300; i++) {
    for (const path of [BUNDLE, "/openapi.json", "/v1/auth/sessions"]) await request(service.publicUrl, { path });
  }
});
afterAll(async () => {
  await service.stop();
  expect(service.stderr()).not.toMatch(/"event":"(bug|uncaught_exception)"/);
  process.stdout.write(`${report()}\n`);
});
afterEach(() => {
  expectWithinBounds(rows.at(-1));
});

describe("HTTP/1.1", () => {
  test.each([
    ["the largest page", BUNDLE],
    ["the document", "/openapi.json"],
    ["the key set", "/.well-known/jwks.json"],
  ])("pipelining of %s without reading costs no memory", async (what, path) => {
    await underAttack(
      service,
      "pipelining, never read",
      `${20 * times} × 200 requests for ${what}`,
      async ({ dial }) => {
        const sockets = Array.from({ length: 20 * times }, () => dial().pause());
        await Promise.all(sockets.map((socket) => written(socket, GET(path).repeat(200))));
        // The response to a later request shows that everything sent before has arrived.
        await request(service.publicUrl, { path: "/healthz" });
      },
    );
  });

  test("bodies and heads that drip are cut", async () => {
    await underAttack(service, "slow bodies and heads", `${400 * times} connections`, async ({ dial }) => {
      const head = "POST /v1/auth/refresh HTTP/1.1\r\nHost: x\r\n";
      const slow = Array.from({ length: 400 * times }, (_, i) => {
        const socket = dial();
        socket.resume().write(i % 2 === 0 ? `${head}Content-Length: 60000\r\n\r\n{` : head);
        return socket;
      });
      const drip = setInterval(() => {
        for (const [i, socket] of slow.entries()) socket.write(i % 2 === 0 ? " " : "a: b\r\n");
      }, 200);
      await Promise.all(slow.map(closed));
      clearInterval(drip);
    });
  });

  test("connections in mass are refused beyond the limit", async () => {
    await underAttack(service, "connection flood", `${2000 * times} connections`, async ({ dial }) => {
      for (let i = 0; i < 2000 * times; i += 200) {
        const some = Array.from({ length: 200 }, () => dial());
        await Promise.all(some.map((socket) => Promise.race([once(socket, "connect"), closed(socket)])));
        for (const socket of some.slice(20)) socket.destroy();
      }
    });
  });
});

describe("HTTP/2", () => {
  /** The bytes with which the header of a RST_STREAM frame begins. */
  const RESET_STREAM = "\0\0\x04\x03\0";
  const open = (stream: number, flags = END_HEADERS) =>
    frame(FRAME.headers, flags, stream, requestBlock("POST", "/v1/auth/refresh"));
  const odd = (count: number, make: (stream: number) => Buffer) =>
    Buffer.concat(Array.from({ length: count }, (_, i) => make(2 * i + 1)));
  const start = Buffer.concat([PREFACE, settings()]);
  const COUNT = 20_000;

  test.each<[string, () => Buffer]>([
    ["unfinished POSTs", () => odd(COUNT, (id) => open(id))],
    [
      "rapid reset",
      () =>
        odd(COUNT, (id) =>
          Buffer.concat([open(id, END_HEADERS | END_STREAM), frame(FRAME.reset, 0, id, Buffer.alloc(4))]),
        ),
    ],
    [
      "CONTINUATION flood",
      () =>
        Buffer.concat([
          open(1, 0),
          ...Array.from({ length: COUNT }, () => frame(FRAME.continuation, 0, 1, requestBlock("x", "y"))),
        ]),
    ],
    ["SETTINGS flood", () => Buffer.concat(Array.from({ length: COUNT }, () => settings([3, 100])))],
    ["PING flood", () => Buffer.concat(Array.from({ length: COUNT }, () => frame(FRAME.ping, 0, 0, Buffer.alloc(8))))],
    [
      "empty DATA flood",
      () => Buffer.concat([open(1), ...Array.from({ length: COUNT }, () => frame(FRAME.data, 0, 1))]),
    ],
    ["PRIORITY flood", () => odd(COUNT, (id) => frame(FRAME.priority, 0, id, Buffer.from([0, 0, 0, 0, 1])))],
    [
      "window updates",
      () => Buffer.concat(Array.from({ length: COUNT }, () => frame(FRAME.window, 0, 0, Buffer.from([0, 0, 0, 1])))),
    ],
    [
      "headers beyond the limit",
      () =>
        odd(100, (id) =>
          frame(
            FRAME.headers,
            END_HEADERS | END_STREAM,
            id,
            Buffer.concat([
              requestBlock("GET", "/"),
              ...Array.from({ length: 300 }, () => Buffer.from([0x10, 1, 0x61, 1, 0x62])),
            ]),
          ),
        ),
    ],
  ])("%s", async (name, make) => {
    const bytes = Buffer.concat([start, make()]);
    await underAttack(service, name, `${3 * times} × ${Math.round(bytes.length / 1024)} KiB`, async ({ dial }) => {
      const sockets = Array.from({ length: 3 * times }, () => dial().resume());
      await Promise.all(sockets.map((socket) => written(socket, bytes)));
      await request(service.publicUrl, { path: "/healthz" });
    });
  });

  test("responses that are not read are given up with their streams", async () => {
    await underAttack(
      service,
      "window of 0, never read",
      `${5 * times} × 100 streams of the largest page`,
      async ({ dial }) => {
        const get = requestBlock("GET", BUNDLE);
        const streams = odd(100, (id) => frame(FRAME.headers, END_HEADERS | END_STREAM, id, get));
        const bytes = Buffer.concat([PREFACE, settings([4, 0]), streams]);
        const sockets = Array.from({ length: 5 * times }, () => dial().pause());
        await Promise.all(sockets.map((socket) => written(socket, bytes)));
        await request(service.publicUrl, { path: "/healthz" });
      },
    );
  });

  test("streams that stay open while PINGs come are cut", async () => {
    await underAttack(service, "idle streams kept by PINGs", `${5 * times} × 100 streams`, async ({ dial }) => {
      const bytes = Buffer.concat([start, odd(100, (id) => open(id))]);
      const resets = await Promise.all(
        Array.from({ length: 5 * times }, async () => {
          const socket = dial();
          let received = 0;
          const ping = setInterval(() => socket.write(frame(FRAME.ping, 0, 0, Buffer.alloc(8))), 100);
          socket.write(bytes);
          await new Promise<void>((resolve) => {
            socket.once("close", () => resolve());
            socket.setEncoding("latin1").on("data", (text: string) => {
              received += text.split(RESET_STREAM).length - 1;
              if (received >= 100) resolve();
            });
          });
          clearInterval(ping);
          return received;
        }),
      );
      expect(Math.min(...resets)).toBeGreaterThan(10);
    });
  });
});

describe("bodies", () => {
  const zeros = Buffer.alloc(32 * 1024 * 1024);
  const envelope = (data: Buffer) => {
    const head = Buffer.alloc(5);
    head[0] = 1;
    head.writeUInt32BE(data.length, 1);
    return Buffer.concat([head, data]);
  };
  const bombs = { gzip: gzipSync(zeros), br: brotliCompressSync(zeros.subarray(0, 4 * 1024 * 1024)) };

  test.each<[string, string, Record<string, string>, Buffer]>([
    ["JSON, gzip", "/v1/auth/refresh", { "content-type": "application/json", "content-encoding": "gzip" }, bombs.gzip],
    [
      "Connect, gzip",
      "/auth.v1.SessionService/Refresh",
      { "content-type": "application/proto", "content-encoding": "gzip" },
      bombs.gzip,
    ],
    [
      "Connect, brotli",
      "/auth.v1.SessionService/Refresh",
      { "content-type": "application/json", "content-encoding": "br" },
      bombs.br,
    ],
    [
      "gRPC, gzip",
      "/auth.v1.SessionService/Refresh",
      { "content-type": "application/grpc+proto", "grpc-encoding": "gzip" },
      envelope(bombs.gzip),
    ],
    [
      "gRPC-Web, brotli",
      "/auth.v1.SessionService/Refresh",
      { "content-type": "application/grpc-web+proto", "grpc-encoding": "br" },
      envelope(bombs.br),
    ],
  ])("a decompression bomb is not inflated: %s", async (name, path, headers, body) => {
    // The requests have a valid credential, because otherwise the service would not read their bodies.
    const credential = cookie((await logIn(service)).refreshToken);
    await underAttack(
      service,
      "decompression bomb",
      `${50 * times} × ${name}, ${Math.ceil(body.length / 1024)} KiB`,
      async ({ saw }) => {
        for (let i = 0; i < 5 * times; i++) {
          await Promise.all(
            Array.from({ length: 10 }, async () => {
              const response = await request(service.publicUrl, {
                ...{ method: "POST", path, body },
                headers: { ...headers, ...credential },
              });
              saw(response.status);
              expect(response.status === 200 && response.body.includes("accessToken")).toBe(false);
            }),
          );
        }
      },
    );
  });

  test("what attackers make it log stays within a budget", async () => {
    const before = service.stderr().length;
    const origin = `https://${"a".repeat(14_000)}.example`;
    const forged = `Bearer ${"e".repeat(8_000)}`;
    const row = await underAttack(
      service,
      "log flood",
      `${500 * times} foreign origins and forged tokens`,
      async ({ dial, saw }) => {
        await Promise.all(
          Array.from({ length: 10 }, async (_, i) => {
            const socket = dial();
            const attack = i % 2 === 0 ? `Origin: ${origin}` : `Authorization: ${forged}`;
            for (let n = 0; n < 50 * times; n++) {
              socket.write(`GET /v1/auth/sessions HTTP/1.1\r\nHost: x\r\n${attack}\r\n\r\n`);
              const [chunk] = await once(socket, "data");
              saw(Number(String(chunk).slice(9, 12)));
            }
          }),
        );
      },
    );
    expect(service.stderr().length - before).toBeLessThan(200_000);
    expect(row.failedBystanders).toBe(0);
  });
});
