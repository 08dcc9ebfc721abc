import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:net";

/** The ports that are given. They and their guards are below those that the system gives to connections and to servers of any port. */
const [FIRST, END] = [10_000, 21_000];

/** For each port that it was given, a process listens at the port so much higher until it ends. No other process is given that port. */
const TO_GUARD = 11_000;

/** Returns a port that is free, and that is not given again, here or in another process of tests, until this process ends. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, END);
    if ((await listenAt(port + TO_GUARD, "127.0.0.1")) === undefined) continue;
    // Without a host, it fails if a server of any address has the port.
    const server = await listenAt(port);
    if (server === undefined) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

/** Returns a server that does not keep the process running; undefined if the port is in use. */
async function listenAt(port: number, host?: string): Promise<Server | undefined> {
  const server = createServer().listen(port, host).unref();
  try {
    await once(server, "listening");
    return server;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    return undefined;
  }
}
