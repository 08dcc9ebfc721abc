/** The limits, in time and bytes, within which the body of a refused request is still read, over a real connection. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { respondWithinBody } from "../../../src/connect-http-routes/node/lingering-close.ts";

afterEach(() => {
  vi.useRealTimers();
});

/** Sends the head of a request and a part of its body, and refuses it. Returns the server's request and the client's socket. */
async function requestWithin(body: string): Promise<{ client: Socket; request: IncomingMessage }> {
  const server = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  onTestFinished(() => void client.destroy());
  client.resume();
  client.write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n${body}`);
  const [request, response] = (await once(server, "request")) as [IncomingMessage, ServerResponse<IncomingMessage>];
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  respondWithinBody(request, response, 413, [], "too large");
  return { client, request };
}

test("a refused body is read for one second, and then the connection is closed", async () => {
  const { client, request } = await requestWithin("12345");
  const ended = once(client, "end");
  vi.advanceTimersByTime(999);
  expect(request.isPaused()).toBe(false);
  vi.advanceTimersByTime(1);
  expect(request.isPaused()).toBe(true);
  await ended;
});

test("the connection is closed as soon as the refused body has arrived, and no timer is left", async () => {
  const { client } = await requestWithin("12345");
  const ended = once(client, "end");
  client.write("67890");
  await ended;
  expect(vi.getTimerCount()).toBe(0);
});
