/** A server that redirects each request to another origin, as a proxy with a fault or an attacker may. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** Starts both servers until the end of the test. `received` has what each has received: of the other, it must be nothing. */
export async function startRedirecting() {
  const received = { first: [] as string[], other: [] as string[] };
  const other = createServer((request, response) => {
    received.other.push(`${request.method} ${request.url}`);
    response.end("{}");
  });
  const first = createServer((request, response) => {
    received.first.push(`${request.method} ${request.url}`);
    // 307 keeps the method and the body.
    response.writeHead(307, { location: `${originOf(other)}/elsewhere` }).end();
  });
  for (const server of [first, other]) await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    for (const server of [first, other]) {
      server.close();
      server.closeAllConnections();
    }
  });
  return { origin: originOf(first), received };
}

const originOf = (server: ReturnType<typeof createServer>) =>
  `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
