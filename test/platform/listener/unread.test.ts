import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { respondToUnread } from "../../../src/platform/listener/http1.ts";

test("a request whose head is too large gets a whole response with a text for its user", async () => {
  const error = Object.assign(new Error("overflow"), { code: "HPE_HEADER_OVERFLOW" });
  const server = createServer((socket) => respondToUnread(error, socket, false)).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1").setEncoding("utf8");
  let text = "";
  for await (const chunk of client) text += chunk;
  const [head = "", body = ""] = text.split("\r\n\r\n");
  expect(body).toMatch(/^The head of the request is larger than .*\n$/);
  expect(head.split("\r\n")).toEqual([
    "HTTP/1.1 431 Request Header Fields Too Large",
    "Connection: close",
    `Content-Length: ${body.length}`,
    "Content-Type: text/plain",
    "Cache-Control: no-store",
  ]);
});
