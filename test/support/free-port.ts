import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * A port that was free a moment ago, below those that the system gives to outgoing connections: one of these, of anybody
 * on this machine, would otherwise take it before the server that it is for.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    const server = createServer().listen(port, "127.0.0.1");
    const free = await once(server, "listening").then(
      () => true,
      () => false,
    );
    server.close();
    if (free) return port;
  }
}
