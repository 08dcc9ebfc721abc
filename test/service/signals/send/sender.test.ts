import { createServer as createHttp, type RequestListener } from "node:http";
import { createServer as createHttps } from "node:https";
import { type AddressInfo, createServer as createTcp, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import type { Find } from "../../../../src/service/signals/send/lookup.ts";
import { createSender, type Sender, type SenderOptions } from "../../../../src/service/signals/send/sender.ts";
import { selfSigned } from "../../../support/certificate.ts";
import { until } from "../../../support/until.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const PEM = selfSigned();

async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

const http = (handle: RequestListener) => listen(createHttp(handle));
const bytes = (onSocket: (socket: Socket) => void) => listen(createTcp(onSocket));

function sender(options: Partial<SenderOptions> = {}): Sender {
  const made = createSender({ allowPrivate: true, ...options });
  closing.push(() => made.close());
  return made;
}

const to = (url: string) => ({ url, headers: { "content-type": "text/plain" }, body: "x" });

/** Creates a resolver that returns these lists of addresses one after the other, and then repeats the last one. */
function resolver(...turns: (readonly string[])[]) {
  let asked = 0;
  const find: Find = async () => {
    const addresses = turns[Math.min(asked++, turns.length - 1)] as readonly string[];
    return addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  };
  return { find, asked: () => asked };
}

test("a receiver that hangs holds up no other one on its host", async () => {
  const hanging = Promise.withResolvers<void>();
  let hung = 0;
  const port = await http((request, response) => {
    if (request.url === "/works") response.end();
    else if (++hung === 8) hanging.resolve();
  });
  const { send } = sender({ deadlineMs: 60_000 });
  const pending = Array.from({ length: 16 }, () => send(to(`http://127.0.0.1:${port}/hangs`)));
  await hanging.promise;
  expect(await send(to(`http://127.0.0.1:${port}/works`))).toEqual({ ok: true, status: 200 });
  expect(hung).toBe(8); // Only 8 connections are opened to an origin, so the other requests wait.
  for (const close of closing.splice(0)) await close();
  await Promise.all(pending);
});

test("a request arrives whole, and connections are used again", async () => {
  const seen: unknown[] = [];
  const ports = new Set<unknown>();
  const port = await http((request, response) => {
    ports.add(request.socket.remotePort);
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      seen.push([request.method, request.url, request.headers["content-type"], body]);
      response.end("ok");
    });
  });
  const warnings: Error[] = [];
  const warn = (warning: Error) => warnings.push(warning);
  process.on("warning", warn);
  const one = sender();
  for (let i = 0; i < 15; i++) {
    expect(await one.send(to(`http://127.0.0.1:${port}/hook`))).toEqual({ ok: true, status: 200 });
  }
  process.off("warning", warn);
  expect(seen).toEqual(Array.from({ length: 15 }, () => ["POST", "/hook", "text/plain", "x"]));
  // A warning would mean that requests leave listeners behind on the connection that they share.
  expect(warnings).toEqual([]);
  expect(ports.size).toBeLessThan(3);
});

test("a redirect is not followed", async () => {
  let requests = 0;
  const port = await http((_, response) => {
    requests++;
    response.writeHead(302, { location: "/elsewhere" }).end();
  });
  expect(await sender().send(to(`http://127.0.0.1:${port}/`))).toEqual({ ok: true, status: 302 });
  expect(requests).toBe(1);
});

test("a name that resolves to a private address is refused before anything is connected", async () => {
  let connections = 0;
  const port = await bytes(() => connections++);
  for (const addresses of [["127.0.0.1"], ["1.1.1.1", "127.0.0.1"], ["::ffff:127.0.0.1"], ["::1"], ["0.0.0.0"], []]) {
    const one = sender({ allowPrivate: false, find: resolver(addresses).find });
    expect(await one.send(to(`https://rebound.example:${port}/`))).toEqual({ ok: false, error: "address_refused" });
  }
  expect(connections).toBe(0);
});

test("a name that changes between two requests is checked again (DNS rebinding)", async () => {
  let connections = 0;
  const port = await http((_, response) => {
    connections++;
    response.setHeader("connection", "close").end();
  });
  const names = resolver(["127.0.0.1"], ["169.254.169.254"]);
  const one = sender({ find: names.find });
  expect(await one.send(to(`http://rebound.example:${port}/`))).toEqual({ ok: true, status: 200 });
  expect(await one.send(to(`http://rebound.example:${port}/`))).toEqual({ ok: false, error: "address_refused" });
  expect([connections, names.asked()]).toEqual([1, 2]);
});

test("http never goes to a public address, although private ones are allowed", async () => {
  const one = sender({ find: resolver(["1.1.1.1"]).find });
  expect(await one.send(to("http://receiver.example/"))).toEqual({ ok: false, error: "address_refused" });
});

test("a receiver that is silent or drips bytes has one deadline for everything", async () => {
  const silent = await bytes(() => {});
  const dripping = await bytes((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nx: ");
    const timer = setInterval(() => socket.write("x"), 10);
    socket.on("close", () => clearInterval(timer));
  });
  const one = sender({ deadlineMs: 200 });
  for (const port of [silent, dripping]) {
    expect(await one.send(to(`http://127.0.0.1:${port}/`))).toEqual({ ok: false, error: "timeout" });
  }
});

test("a body without end is not read to its end", async () => {
  const closed = Promise.withResolvers<void>();
  const port = await bytes((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
    const more = () => {
      while (socket.writable && socket.write(Buffer.alloc(65_536)));
    };
    socket.on("drain", more);
    socket.on("close", () => closed.resolve());
    more();
  });
  expect(await sender().send(to(`http://127.0.0.1:${port}/`))).toEqual({ ok: true, status: 200 });
  await closed.promise;
});

test.each([
  ["interim responses", "HTTP/1.1 103 Early Hints\r\n\r\n"],
  ["blank lines", "\r\n"],
])("%s without end are not read until the deadline", async (_, unit) => {
  const port = await bytes((socket) => {
    const more = () => {
      while (socket.writable && socket.write(unit.repeat(1_000)));
    };
    socket.on("drain", more);
    more();
  });
  expect(await sender().send(to(`http://127.0.0.1:${port}/`))).toEqual({ ok: false, error: "too_large" });
});

test.each([
  ["invalid_response", "SSH-2.0-garbage\r\n\r\n"],
  ["invalid_response", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"],
  ["too_large", `HTTP/1.1 200 OK\r\nX: ${"x".repeat(20_000)}\r\n\r\n`],
])("%s is what a broken response is called", async (error, text) => {
  const port = await bytes((socket) => socket.once("data", () => socket.end(text)));
  expect(await sender().send(to(`http://127.0.0.1:${port}/`))).toEqual({ ok: false, error });
});

test("who does not listen, or closes at once, is unreachable", async () => {
  const closes = await bytes((socket) => socket.destroy());
  expect(await sender().send(to(`http://127.0.0.1:${closes}/`))).toEqual({ ok: false, error: "unreachable" });
  expect(await sender().send(to("http://127.0.0.1:1/"))).toEqual({ ok: false, error: "unreachable" });
});

test("a certificate must be of a known authority", async () => {
  const port = await listen(createHttps(PEM, (_, response) => response.end()));
  expect(await sender().send(to(`https://127.0.0.1:${port}/`))).toEqual({ ok: false, error: "tls" });
  expect(await sender({ ca: PEM.cert }).send(to(`https://127.0.0.1:${port}/`))).toEqual({ ok: true, status: 200 });
});

test.each(["nonsense", "ftp://receiver.example/", "http://8.8.8.8/"])("nothing is sent to %s", async (url) => {
  expect(await sender().send(to(url))).toEqual({ ok: false, error: "address_refused" });
});

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/** Starts a receiver that responds to the requests of a connection with these texts, one after the other, and then closes it. */
async function responding(...texts: readonly string[]) {
  const seen = { connections: 0, requests: 0, closed: 0 };
  const port = await bytes((socket) => {
    seen.connections++;
    socket.on("close", () => seen.closed++);
    let at = 0;
    socket.on("data", () => {
      seen.requests++;
      const text = texts[at++];
      if (text === undefined) socket.destroy();
      else socket.write(text);
    });
  });
  return { seen, url: `http://127.0.0.1:${port}/` };
}

describe("a connection that was kept open", () => {
  test("and that the receiver closes is replaced by a new one", async () => {
    const { seen, url } = await responding(OK);
    const { send } = sender();
    for (let times = 0; times < 3; times++) expect(await send(to(url))).toEqual({ ok: true, status: 200 });
    // The second and the third request were sent twice each.
    expect(seen).toMatchObject({ connections: 3, requests: 5 });
  });

  test("is replaced once: a receiver that closes two of them is unreachable", async () => {
    let waiting: Socket[] = [];
    let requests = 0;
    const port = await bytes((socket) => {
      socket.on("data", () => {
        if (++requests > 2) return socket.destroy();
        waiting.push(socket);
        if (waiting.length < 2) return;
        for (const one of waiting) one.write(OK);
        waiting = [];
      });
    });
    const { send } = sender();
    const url = `http://127.0.0.1:${port}/`;
    await Promise.all([send(to(url)), send(to(url))]);
    expect(await send(to(url))).toEqual({ ok: false, error: "unreachable" });
    expect(requests).toBe(4);
  });

  test("is not replaced where its response is broken", async () => {
    const { seen, url } = await responding(OK, "SSH-2.0-garbage\r\n\r\n");
    const { send } = sender();
    await send(to(url));
    expect(await send(to(url))).toEqual({ ok: false, error: "invalid_response" });
    expect(seen).toMatchObject({ connections: 1, requests: 2 });
  });

  test("is closed with the sender", async () => {
    const { seen, url } = await responding(OK);
    const secure = { closed: 0 };
    const server = createHttps(PEM, (_, response) => response.end());
    server.on("secureConnection", (socket) => socket.on("close", () => secure.closed++));
    const port = await listen(server);
    const one = sender({ ca: PEM.cert });
    await one.send(to(url));
    await one.send(to(`https://127.0.0.1:${port}/`));
    expect([seen.closed, secure.closed]).toEqual([0, 0]);
    one.close();
    await until(() => expect([seen.closed, secure.closed]).toEqual([1, 1]));
  });

  test.each([
    [16_384, 1],
    [16_385, 2],
  ])("is used again after a body of %d bytes if that is short: %d connections", async (length, connections) => {
    const { seen, url } = await responding(
      `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n${"x".repeat(length)}`,
      OK,
    );
    const { send } = sender();
    await send(to(url));
    // The connection is free, or closed, once the body was read.
    await until(() => expect(seen.requests).toBe(1));
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(await send(to(url))).toEqual({ ok: true, status: 200 });
    expect(seen.connections).toBe(connections);
  });
});

test("a new connection that the receiver closes is not tried again", async () => {
  const { seen, url } = await responding();
  expect(await sender().send(to(url))).toEqual({ ok: false, error: "unreachable" });
  expect(seen).toMatchObject({ connections: 1, requests: 1 });
});

test("eight interim responses are accepted before the response, and the ninth is too much", async () => {
  const send = async (count: number) => {
    const port = await bytes((socket) => {
      socket.once("data", async () => {
        socket.write("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(count));
        // They are read before the response is.
        for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
        socket.write(OK);
      });
    });
    return sender().send(to(`http://127.0.0.1:${port}/`));
  };
  expect(await send(8)).toEqual({ ok: true, status: 200 });
  expect(await send(9)).toEqual({ ok: false, error: "too_large" });
});

test("a connection that is closed after its handshake is unreachable, and no fault of TLS", async () => {
  const server = createHttps(PEM, (request) => request.socket.destroy());
  const port = await listen(server);
  const result = await sender({ ca: PEM.cert }).send(to(`https://127.0.0.1:${port}/`));
  expect(result).toEqual({ ok: false, error: "unreachable" });
});

test("an upgrade that nobody asked for closes the connection", async () => {
  const { seen, url } = await responding("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
  expect(await sender().send(to(url))).toEqual({ ok: false, error: "invalid_response" });
  await until(() => expect(seen.closed).toBe(1));
});

test("the address that is really used is checked, whatever the look-up has said", async () => {
  let requests = 0;
  const port = await listen(createHttps(PEM, () => requests++));
  let asked = 0;
  const found = {
    family: 4 as const,
    get address() {
      return asked++ === 0 ? "8.8.8.8" : "127.0.0.1";
    },
  };
  const one = sender({ allowPrivate: false, ca: PEM.cert, find: async () => [found] });
  const result = await one.send(to(`https://receiver.example:${port}/`));
  expect([result, requests]).toEqual([{ ok: false, error: "address_refused" }, 0]);
});
