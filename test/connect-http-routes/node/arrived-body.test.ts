import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterEach, expect, test } from "vitest";
import { endTaken, takeArrived } from "../../../src/connect-http-routes/node/node-exchange.ts";

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/**
 * Sends a request to a server in pieces, and calls `handle` with it. Each piece is sent only when the server has received the previous one.
 */
async function requestOf(pieces: readonly string[], handle: (request: IncomingMessage) => unknown): Promise<void> {
  const server = createServer((request, response) => {
    const done = async () => {
      await undefined;
      await handle(request);
      response.end();
    };
    void done();
  }).listen(0, "127.0.0.1");
  ends.push(() => server.close().closeAllConnections());
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  ends.push(() => client.destroy());
  const [first = "", ...others] = pieces;
  client.write(first);
  if (others.length > 0) server.once("request", () => setImmediate(() => client.write(others.join(""))));
  await once(client, "data");
}

const HEAD = "POST / HTTP/1.1\r\nhost: a\r\n";

test.each([
  ["with a length", "content-length: 5\r\n\r\nhello", "hello"],
  ["without bytes", "content-length: 0\r\n\r\n", ""],
])("a body %s that comes with its head is taken once, and its request ends", async (_, rest, expected) => {
  const seen: unknown[] = [];
  let closed: Promise<unknown> | undefined;
  await requestOf([HEAD + rest], (request) => {
    closed = Promise.all([once(request, "end"), once(request, "close")]);
    const taken = takeArrived(request);
    seen.push(taken && Buffer.from(taken).toString());
    endTaken(request);
  });
  await closed;
  expect(seen).toEqual([expected]);
});

test("a body that is taken before and after its request is complete leaves the connection to the next request", async () => {
  const bodies: unknown[] = [];
  const server = createServer(async (request, response) => {
    await undefined;
    const taken = takeArrived(request);
    const again = takeArrived(request);
    bodies.push(taken && Buffer.from(taken).toString(), again);
    if (request.url === "/late") await new Promise(setImmediate);
    const closed = once(request, "close");
    endTaken(request);
    await closed;
    response.end();
  }).listen(0, "127.0.0.1");
  ends.push(() => server.close().closeAllConnections());
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  ends.push(() => client.destroy());
  for (const [path, body] of [
    ["/late", "one"],
    ["/now", "two"],
    ["/late", "three"],
  ] as const) {
    client.write(`POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    await once(client, "data");
  }
  expect(bodies).toEqual(["one", undefined, "two", undefined, "three", undefined]);
});

test("a body that arrives later is left to those who listen", async () => {
  let taken: unknown = "not asked";
  let rest = "";
  await requestOf([`${HEAD}content-length: 5\r\n\r\nhe`, "llo"], async (request) => {
    taken = takeArrived(request);
    for await (const chunk of request) rest += chunk;
  });
  expect([taken, rest]).toEqual([undefined, "hello"]);
});
