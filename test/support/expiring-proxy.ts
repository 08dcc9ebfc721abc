/** A TCP proxy in front of a Redis that closes connections whose password has expired, as rented Redis servers do. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { commandReader } from "./recording-proxy.ts";

export type ExpiringProxy = {
  readonly port: number;
  /** Returns the passwords that the open connections have sent last. */
  passwords(): string[];
  /** Closes the connections that have sent another password last. Returns how many there were. */
  expireAllBut(password: string): number;
  stop(): Promise<void>;
};

/** @param user the user whose passwords expire; connections of others stay open */
export async function startExpiringProxy(target: number, user: string): Promise<ExpiringProxy> {
  const passwords = new Map<Socket, string>();
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    }
    const read = commandReader((words) => {
      const [name = "", ...args] = words.map((word, index) => (index === 0 ? word.toLowerCase() : word));
      const [found, password] = name === "hello" ? args.slice(2) : name === "auth" ? args : [];
      if (found === user && password !== undefined) passwords.set(client, password);
    });
    client.on("data", (bytes: Buffer) => {
      read(bytes);
      upstream.write(bytes);
    });
    client.on("close", () => {
      passwords.delete(client);
      upstream.destroy();
    });
    upstream.on("data", (bytes) => client.write(bytes)).on("close", () => client.destroy());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    passwords: () => [...passwords.values()],
    expireAllBut(password) {
      const expired = [...passwords].filter(([, own]) => own !== password);
      for (const [client] of expired) client.destroy();
      return expired.length;
    },
    async stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}
