/** Writing into responses past the framework that began them. */
import { on, once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { keepOutput, type Output, outputOf } from "../../../src/platform/listener/output.ts";

const server = createServer();
let client: Socket;
beforeEach(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  client = connect((server.address() as AddressInfo).port, "127.0.0.1");
});
afterEach(async () => {
  client.destroy();
  await new Promise((resolve) => server.close(resolve));
});

/** Sends a request. Returns its response, whose first message has been written, and the output that writes into it. */
async function begin(version: string): Promise<{ readonly response: ServerResponse; readonly output: Output }> {
  client.write(`GET / HTTP/${version}\r\nhost: a\r\n\r\n`);
  const [request, response] = await once(server, "request");
  keepOutput(request, response);
  response.write("first,");
  return { response, output: outputOf(request) as Output };
}

async function bodyOf(socket: Socket): Promise<string> {
  const text = (await socket.setEncoding("latin1").toArray()).join("");
  return text.slice(text.indexOf("\r\n\r\n") + 4);
}

test("what is written comes after the first message, also in the same turn, and before the end", async () => {
  const { response, output } = await begin("1.1");
  const shared = Buffer.from("shared by all,");
  expect(output.write(shared)).toBe(true);
  await new Promise(setImmediate);
  expect(output.write(shared)).toBe(true);
  response.shouldKeepAlive = false;
  response.end("last", () => client.end());
  expect(output.write(shared)).toBe(true);
  expect((await bodyOf(client)).replaceAll(/(?<=^|\n)[\da-f]+\r\n|\r\n/g, "")).toBe(
    "first,shared by all,shared by all,last",
  );
});

test("what is written before the response has its connection, or its head, comes when its turn comes", async () => {
  const beginBoth = async () => {
    const responses: ServerResponse[] = [];
    for await (const [request, response] of on(server, "request")) {
      keepOutput(request, response);
      outputOf(request)?.write(Buffer.from(request.url));
      if (responses.push(response) === 2) break;
    }
    return responses;
  };
  const both = beginBoth();
  client.write("GET /a HTTP/1.1\r\nhost: a\r\n\r\nGET /b HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
  const [earlier, later] = await both;
  expect(later?.socket).toBeNull();
  later?.end();
  earlier?.end();
  expect((await bodyOf(client)).match(/\/[ab]/g)).toEqual(["/a", "/b"]);
});

test("a client of HTTP/1.0 gets the bytes without chunks", async () => {
  const { response, output } = await begin("1.0");
  output.write(Buffer.from("second,"));
  response.end("last");
  expect(await bodyOf(client)).toBe("first,second,last");
});

test("the output waits for a client that does not read, until it reads or leaves", async () => {
  const { output } = await begin("1.1");
  const much = Buffer.alloc(1024 * 1024);
  client.pause();
  while (output.write(much));
  const drained = output.drained();
  client.resume();
  await drained;
  client.pause();
  while (output.write(much));
  const left = output.drained();
  client.destroy();
  await left;
  expect(output.write(much)).toBe(true);
});
