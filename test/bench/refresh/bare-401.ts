/** The least that a refusal over HTTP can cost: node:http with a response that is the same for every request. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const BODY = '{"error":{"code":"E001_AUTH_FAILURE","message":"authentication failed"}}';
const HEAD = { "content-type": "application/json", "content-length": String(BODY.length), "cache-control": "no-store" };

const server = createServer((_request, response) => response.writeHead(401, HEAD).end(BODY)).listen(
  0,
  "127.0.0.1",
  () => console.log(JSON.stringify({ port: (server.address() as AddressInfo).port })),
);
