/** Clients that refresh again and again at the token endpoint, with a proof or without, each over a separate connection. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type ClientKey, dpop } from "../../support/dpop.ts";
import { cpuTime } from "../refresh/proc.ts";
import type { Request } from "../refresh/requests.ts";
import { ISSUER, type Service } from "../refresh/service.ts";

const TOKEN_PATH = "/v1/oauth/token";

/** Finds the next token in a response. */
const NEXT = /"refresh_token":"([^"]+)"/;
const FORM = "grant_type=refresh_token&client_id=bench&refresh_token=";
/** Returns the part of a request that precedes its token. All tokens have one length, so one `content-length` serves all requests. */
export const byGrant = (tokenLength: number): Request => ({
  head: `POST ${TOKEN_PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: ${FORM.length + tokenLength}\r\n\r\n${FORM}`,
  tail: "",
});

/** Returns a proof for one request. */
export const proveGrant = (key: ClientKey) => dpop(key, ISSUER + TOKEN_PATH);

export class Client {
  readonly #request: Request;
  readonly #port: number;
  #socket: Socket | undefined;
  #token: string;
  /** The bytes of the last response. */
  responseBytes = 0;

  constructor(request: Request, { port }: Service, token: string) {
    this.#request = request;
    this.#port = port;
    this.#token = token;
  }

  async connect(): Promise<void> {
    this.#socket = connect({ port: this.#port, host: "127.0.0.1", noDelay: true });
    await once(this.#socket, "connect");
  }

  /**
   * Refreshes once, with a proof if there is one. On a busy machine this may need several attempts.
   *
   * @throws unless the response has a new token
   */
  async refresh(key?: ClientKey, proof?: string): Promise<void> {
    const { head, tail } = this.#request;
    const whole = proof === undefined ? head : head.replace("\r\n", `\r\ndpop: ${proof}\r\n`);
    const text = await this.#ask(`${whole}${this.#token}${tail}`);
    if (text.startsWith("HTTP/1.1 503")) return this.refresh(key, key && proveGrant(key));
    const [, token] = NEXT.exec(text) ?? [];
    if (!text.startsWith("HTTP/1.1 200") || token === undefined) throw new Error(text);
    this.#token = token;
    this.responseBytes = text.length;
  }

  #ask(request: string): Promise<string> {
    const socket = this.#socket as Socket;
    return new Promise((resolve, reject) => {
      let text = "";
      const lost = () => reject(new Error("the connection is lost"));
      const read = (chunk: Buffer) => {
        text += chunk.toString("latin1");
        const body = text.indexOf("\r\n\r\n") + 4;
        const [, length] = /\r\ncontent-length: *(\d+)/i.exec(text) ?? [];
        if (body < 4 || length === undefined || text.length - body < Number(length)) return;
        socket.off("data", read).off("close", lost);
        resolve(text);
      };
      socket.on("data", read).once("close", lost);
      socket.write(request, "latin1");
    });
  }

  close(): void {
    this.#socket?.destroy();
  }
}

/**
 * Lets all clients refresh `count` times. Returns how much CPU time of the server one refresh takes, in µs. The proofs are made before the
 * measurement begins.
 */
export async function measure({ pid }: Service, clients: readonly Client[], count: number, key?: ClientKey) {
  const proofs = clients.map(() => Array.from({ length: count }, () => key && proveGrant(key)));
  // The clients connect again, because the service closes connections that stay idle while other clients are measured.
  await Promise.all(clients.map((client) => client.connect()));
  const before = cpuTime(pid) ?? Number.NaN;
  await Promise.all(
    clients.map(async (client, index) => {
      for (const proof of proofs[index] ?? []) await client.refresh(key, proof);
    }),
  );
  const spent = (cpuTime(pid) ?? Number.NaN) - before;
  for (const client of clients) client.close();
  return (spent / (clients.length * count)) * 1e6;
}
