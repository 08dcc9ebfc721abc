/** A listener serves HTTP/1.1 and HTTP/2 on one port, and withstands peers that behave badly. */
import { once } from "node:events";
import { request as http1Request, type ServerResponse } from "node:http";
import { connect as connectHttp2, constants, Http2ServerResponse } from "node:http2";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterEach, describe, expect, test } from "vitest";
import {
  type Handler,
  type HttpResponse,
  type Listener,
  openListener,
  respond,
} from "../../../src/platform/listener/listener.ts";
import { selfSigned } from "../../support/certificate.ts";
import { HANG_MS } from "../../support/patience.ts";
import { until } from "../../support/until.ts";

const { cert, key } = selfSigned();
const tls = { cert: Buffer.from(cert), key: Buffer.from(key) };
/** How long `close` may wait for open connections. It is longer than the time limit of a test, so a `close` that waits so long fails. */
const LONGER_THAN_TEST_MS = 2 * HANG_MS;
const listeners: Listener[] = [];
afterEach(async () => {
  await Promise.all(listeners.splice(0).map((listener) => listener.close(0)));
});

/** Responds with the HTTP version of the request. */
const versionHandler: Handler = (request, response) => respond(response, 200, {}, request.httpVersion);

async function opened(
  handler: Handler = versionHandler,
  options: Parameters<typeof openListener>[3] = {},
): Promise<Listener> {
  const listener = await openListener("test", "127.0.0.1", 0, options);
  listeners.push(listener);
  listener.serve(handler);
  return listener;
}

function dial(listener: Listener): { socket: Socket; closed: Promise<string> } {
  const socket = connect(listener.port, "127.0.0.1");
  let heard = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => {
    heard += chunk;
  });
  socket.on("error", () => {});
  // The promise also resolves at a reset, at which `once` of node:events would reject.
  return { socket, closed: new Promise((resolve) => socket.once("close", () => resolve(heard))) };
}

async function overHttp2(listener: Listener, authority = listener.url, options = {}): Promise<string> {
  const session = connectHttp2(authority, options);
  session.on("error", () => {}); // The error of the session is ignored, because the stream fails with the same error.
  const stream = session.request({ ":path": "/" });
  stream.setEncoding("utf8");
  let body = "";
  for await (const chunk of stream) body += chunk;
  session.close();
  return body;
}

function overHttp1(listener: Listener): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = http1Request({ host: "127.0.0.1", port: listener.port, agent: false }, async (response) => {
      let body = "";
      for await (const chunk of response.setEncoding("utf8")) body += chunk;
      resolve(body);
    });
    request.once("error", reject);
    request.end();
  });
}

const GET = "GET / HTTP/1.1\r\nHost: x\r\n";

describe("one port", () => {
  test("speaks HTTP/1.1 and HTTP/2 by prior knowledge", async () => {
    const listener = await opened();
    expect([await overHttp1(listener), await overHttp2(listener)]).toEqual(["1.1", "2.0"]);
  });

  test("knows HTTP/2 however its first bytes are cut", async () => {
    const listener = await opened();
    const { socket, closed } = dial(listener);
    socket.setNoDelay(true);
    for (const piece of ["P", "R", "I * HTTP/2.0\r\n\r\nSM\r\n\r\n"]) {
      await new Promise((resolve) => socket.write(piece, resolve));
      await overHttp1(listener); // The response to a later request shows that the earlier bytes have arrived.
    }
    socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])); // An empty SETTINGS frame follows.
    const [settings] = await once(socket, "data");
    expect(Buffer.from(settings, "latin1")[3]).toBe(4);
    socket.destroy();
    await closed;
  });

  test("takes a request that comes byte by byte, and several on one connection", async () => {
    const listener = await opened();
    const { socket, closed } = dial(listener);
    for (const byte of `${GET}\r\n${GET}Connection: close\r\n\r\n`) socket.write(byte);
    expect((await closed).match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
  });

  test("holds connections that come before a handler is set", async () => {
    const listener = await openListener("test", "127.0.0.1", 0);
    listeners.push(listener);
    const early = overHttp1(listener);
    await once(connect(listener.port, "127.0.0.1"), "connect");
    listener.serve(versionHandler);
    expect(await early).toBe("1.1");
  });
});

describe("peers that behave badly", () => {
  const headTimeoutMs = 60;
  // A longer timeout for tests in which a well-behaved peer connects as well. On a busy machine the handshake can take more than 60 ms.
  const HANDSHAKE_TIMEOUT_MS = 1_000;

  test.each([
    ["sends nothing", ""],
    ["stops within the preface of HTTP/2", "PR"],
    ["stops within a request head", GET],
  ])("a connection that %s is cut", async (_, text) => {
    const listener = await opened(versionHandler, { limits: { headTimeoutMs } });
    const { socket, closed } = dial(listener);
    socket.write(text);
    expect(await closed).not.toContain("200");
  });

  const LARGE = "a".repeat(20_000);
  test.each([
    ["head", `${GET}X: ${LARGE}\r\n\r\n`],
    ["path", `${GET.replace("/", `/${LARGE}`)}\r\n`],
    ["body", `${GET.replace("GET", "POST")}Content-Length: ${LARGE.length}\r\n\r\n${LARGE}`],
    ["body in chunks", `${GET.replace("GET", "POST")}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`],
  ])("pipelined requests that wait with a large %s are cut", async (_what, request) => {
    const listener = await opened(() => {});
    const { closed, socket } = dial(listener);
    socket.write(request.repeat(3));
    expect(await closed).toBe("");
  });

  test.each([
    ["with a large body", `Content-Length: ${2 * LARGE.length}\r\n\r\n${LARGE}${LARGE}`],
    ["with a body in chunks", "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"],
  ])("one request %s waits: its client may have read the response before", async (_what, rest) => {
    const responses: HttpResponse[] = [];
    const listener = await opened((request, response) => {
      request.resume();
      responses.push(response);
    });
    const { socket, closed } = dial(listener);
    socket.write(`${GET}\r\n${GET.replace("GET", "POST")}Connection: close\r\n${rest}`);
    for (const served of [0, 1]) {
      await until(() => expect(responses).toHaveLength(served + 1));
      respond(responses[served] as HttpResponse, 200, {}, `response ${served}`);
    }
    expect(await closed).toMatch(/response 0.*response 1/s);
  });

  test("small pipelined requests wait", async () => {
    const waiting: HttpResponse[] = [];
    const listener = await opened((_request, response) => void waiting.push(response));
    const small = dial(listener);
    small.socket.write(`${GET}\r\n`.repeat(20));
    for (let served = 0; served < 20; served++) {
      await until(() => expect(waiting).toHaveLength(served + 1));
      respond(waiting[served] as HttpResponse, 200, {}, "");
    }
    small.socket.destroy();
  });

  test("a head that drips is cut all the same", async () => {
    const listener = await opened(versionHandler, { limits: { headTimeoutMs } });
    const { socket, closed } = dial(listener);
    socket.write(GET);
    const drip = setInterval(() => socket.write("X: y\r\n"), 10);
    expect(await closed).not.toContain("200");
    clearInterval(drip);
  });

  test("a TLS handshake that does not come is cut", async () => {
    const listener = await opened(versionHandler, { tls, limits: { headTimeoutMs: HANDSHAKE_TIMEOUT_MS } });
    await dial(listener).closed;
    const { socket, closed } = dial(listener);
    socket.write("nonsense");
    await closed;
    expect(await until(() => overHttp2(listener, listener.url, { ca: tls.cert }))).toBe("2.0");
  });

  test("a secure connection that sends nothing is cut", async () => {
    const listener = await opened(versionHandler, { tls, limits: { headTimeoutMs: HANDSHAKE_TIMEOUT_MS } });
    const socket = await until(async () => {
      const dialed = connectTls({ port: listener.port, host: "127.0.0.1", ca: tls.cert, ALPNProtocols: ["http/1.1"] });
      await once(dialed, "secureConnect");
      return dialed;
    });
    socket.on("error", () => {}).resume();
    await once(socket, "close");
  });

  test.each<[string, Buffer]>([
    ["zeroes", Buffer.alloc(1000)],
    ["a TLS hello on a plain port", Buffer.from("160301020001000200", "hex")],
    ["no HTTP", Buffer.from("EHLO example.com\r\n\r\n")],
    ["a broken HTTP/2 preface", Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\u00ff\u00ff\u00ff\u00ff\u00ff")],
    ["HTTP/2 of another kind", Buffer.from("PRI * HTTP/3.0\r\n\r\nSM\r\n\r\n")],
    [
      "two lengths",
      Buffer.from(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`),
    ],
  ])("%s end that connection alone", async (_, bytes) => {
    const listener = await opened();
    const { socket, closed } = dial(listener);
    socket.end(bytes);
    expect(await closed).not.toContain("200 OK");
    expect(await overHttp1(listener)).toBe("1.1");
  });

  test("a peer that leaves at any moment is let go", async () => {
    const listener = await opened();
    for (const text of ["", "P", "PRI", GET, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]) {
      const [half, reset] = [dial(listener), dial(listener)];
      half.socket.end(text);
      await once(reset.socket, "connect");
      reset.socket.write(text);
      reset.socket.resetAndDestroy();
      await Promise.all([half.closed, reset.closed]);
    }
    expect(await overHttp1(listener)).toBe("1.1");
  });

  test("a response that is not taken is given up, also where requests may last", async () => {
    const limits = { requestTimeoutMs: Number.POSITIVE_INFINITY, writeTimeoutMs: 200 };
    const listener = await opened((_, response) => respond(response, 200, {}, Buffer.alloc(4_000_000)), { limits });
    const session = connectHttp2(listener.url);
    session.on("error", () => {});
    const closed = (stream: ReturnType<typeof session.request>) =>
      new Promise((resolve) => stream.on("error", () => {}).once("close", () => resolve(stream.rstCode)));
    const whole = session.request({ ":path": "/" });
    const unfinished = session.request({ ":path": "/", ":method": "POST" });
    unfinished.write("x");
    expect(await Promise.all([whole, unfinished].map(closed))).toEqual(
      Array(2).fill(constants.NGHTTP2_ENHANCE_YOUR_CALM),
    );
    session.destroy();
  });

  test("streams that are opened and reset at once (rapid reset) harm nobody else", async () => {
    const listener = await opened();
    const session = connectHttp2(listener.url);
    session.on("error", () => {});
    for (let i = 0; i < 2000 && !session.closed && !session.destroyed; i++) {
      const stream = session.request({ ":path": "/" });
      stream.on("error", () => {});
      stream.close(constants.NGHTTP2_CANCEL);
    }
    expect(await overHttp2(listener)).toBe("2.0");
    session.destroy();
  });
});

describe("closing", () => {
  test("does not wait for connections that are idle", async () => {
    const listener = await opened();
    const kept = dial(listener);
    kept.socket.write(`${GET}\r\n`);
    await once(kept.socket, "data");
    const session = connectHttp2(listener.url);
    const stream = session.request({ ":path": "/" });
    stream.resume();
    await once(stream, "close");
    await listener.close(LONGER_THAN_TEST_MS);
    await kept.closed;
  });

  test.each([
    ["nothing", ""],
    ["the beginning of something", "P"],
  ])("does not wait for connections that have sent %s", async (_, text) => {
    const listener = await opened();
    const { socket, closed } = dial(listener);
    await new Promise<void>((resolve) => socket.write(`${text}`, () => resolve()));
    await overHttp1(listener);
    await listener.close(LONGER_THAN_TEST_MS);
    expect(await closed).toBe("");
  });

  test("does not wait for the rest of a request that has its response", async () => {
    const listener = await opened(async (request, response) => {
      for await (const _ of request) break; // The first piece is enough to see that the body is too large.
      if (!(response instanceof Http2ServerResponse)) throw new Error("asked over HTTP/1.1");
      response.writeHead(200);
      response.addTrailers({ "grpc-status": "8" });
      response.end("too large");
    });
    const session = connectHttp2(listener.url);
    const stream = session.request({ ":method": "POST", ":path": "/" });
    const trailers = once(stream, "trailers");
    stream.resume().end(Buffer.alloc(500_000));
    expect((await trailers)[0]["grpc-status"]).toBe("8");
    await listener.close(LONGER_THAN_TEST_MS);
  });

  test("lets a response in progress finish, and accepts no new connection", async () => {
    const { promise: asked, resolve: hasBeenAsked } = Promise.withResolvers<ServerResponse>();
    const listener = await opened((_request, response) => hasBeenAsked(response as ServerResponse));
    const { socket, closed } = dial(listener);
    socket.write(`${GET}\r\n`);
    const response = await asked;
    const closing = listener.close(60_000);
    const [error] = await once(connect(listener.port, "127.0.0.1"), "error");
    expect(error.code).toBe("ECONNREFUSED");
    response.end("late");
    expect(await closed).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*late/);
    await closing;
  });

  test("announces to clients of HTTP/1.1 that their connection ends, before it closes idle ones", async () => {
    const { promise: asked, resolve: hasBeenAsked } = Promise.withResolvers<ServerResponse>();
    const listener = await opened((_request, response) => hasBeenAsked(response as ServerResponse));
    const { socket, closed } = dial(listener);
    socket.write(`${GET}\r\n`);
    const response = await asked;
    const closing = listener.close(LONGER_THAN_TEST_MS, LONGER_THAN_TEST_MS);
    response.end("last");
    expect(await closed).toMatch(/connection: close/i);
    await closing;
  });

  test("lets a request that has begun to arrive finish", async () => {
    const listener = await opened();
    const { socket, closed } = dial(listener);
    await new Promise<void>((resolve) => socket.write(GET, () => resolve()));
    await overHttp1(listener); // The response to a request on another connection shows that the first part of this request has arrived.
    const closing = listener.close(LONGER_THAN_TEST_MS);
    socket.write("\r\n");
    expect(await closed).toMatch(/^HTTP\/1\.1 200 OK/);
    await closing;
  });

  test("lets a response in progress finish over HTTP/2, too, and sends GOAWAY", async () => {
    const { promise: asked, resolve: hasBeenAsked } = Promise.withResolvers<HttpResponse>();
    const listener = await opened((_request, response) => hasBeenAsked(response));
    const session = connectHttp2(listener.url);
    const goaway = once(session, "goaway");
    const stream = session.request({ ":path": "/" });
    let body = "";
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      body += chunk;
    });
    const response = await asked;
    const closing = listener.close(60_000);
    expect((await goaway)[0]).toBe(constants.NGHTTP2_NO_ERROR);
    respond(response, 200, {}, "late");
    await once(stream, "close");
    expect(body).toBe("late");
    await closing;
  });

  test("cuts what does not finish in time", async () => {
    const { promise: asked, resolve: hasBeenAsked } = Promise.withResolvers<void>();
    const listener = await opened(() => hasBeenAsked());
    const { socket, closed } = dial(listener);
    socket.write(`${GET}\r\n`);
    await asked;
    await listener.close(10);
    expect(await closed).toBe("");
  });
});

test("a port that cannot be had is named with its listener", async () => {
  const listener = await opened();
  await expect(openListener("second", "127.0.0.1", listener.port)).rejects.toThrow(
    `cannot open the second listener on 127.0.0.1:${listener.port}: the port is taken`,
  );
  await expect(openListener("second", "host.invalid", 0)).rejects.toThrow(
    /^cannot open the second listener on host\.invalid:0: /,
  );
});
