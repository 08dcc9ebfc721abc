/** The minimal cost of a refusal over HTTP: a server with node:http that responds to every request in the same way. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const BODY = '{"error":{"code":"E001_AUTH_FAILURE","message":"authentication failed"}}';
const HEAD = { "content-type": "application/json", "content-length": String(BODY.length), "cache-control": "no-store" };

const server = createServer((_request, response) => response.writeHead(401, HEAD).end(BODY)).listen(
  0,
  "127.0.0.1",
  () => console.log(JSON.stringify({ port: (server.address() as AddressInfo).port })),
);
