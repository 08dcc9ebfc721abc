/** A TCP proxy in front of a Redis that closes connections whose password has expired, as rented Redis servers do. */
import type { Socket } from "node:net";
import { commandReader } from "./recording-proxy.ts";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";

export type ExpiringProxy = Pick<TcpProxy, "port" | "stop"> & {
  /** Returns the passwords that the open connections have sent last. */
  passwords(): string[];
  /** Closes the connections that have sent another password last. Returns how many there were. */
  expireAllBut(password: string): number;
};

/** @param user the user whose passwords expire; connections of others stay open */
export async function startExpiringProxy(target: number, user: string): Promise<ExpiringProxy> {
  const passwords = new Map<Socket, string>();
  const { port, stop } = await startTcpProxy(target, (client, upstream) => {
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
  });
  return {
    port,
    stop,
    passwords: () => [...passwords.values()],
    expireAllBut(password) {
      const expired = [...passwords].filter(([, own]) => own !== password);
      for (const [client] of expired) client.destroy();
      return expired.length;
    },
  };
}
