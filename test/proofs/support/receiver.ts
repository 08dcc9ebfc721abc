/** A receiver of webhooks on loopback whose behaviour the test sets. It stores what it has accepted. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { freePort } from "../../support/free-port.ts";

/** How the receiver behaves. `cut`: it accepts, and its response is lost. `silent`: it never responds. A number is a status. */
export type Behaviour = "accept" | "slow" | "cut" | "garbage" | "silent" | number;

/** How long a slow receiver takes for a response, in ms. */
const SLOW_MS = 30;

export class Receiver {
  /** The ids of accepted signals in the order of their arrival, with repetitions, by session. */
  readonly accepted = new Map<string, string[]>();
  behaviour: Behaviour;
  /** Is called for each accepted signal. */
  onAccepted: (sessionId: string) => void = () => {};
  /** Whether a redirect was followed. */
  redirected = false;
  #server: Server;
  #port = 0;

  constructor(behaviour: Behaviour = "accept") {
    this.behaviour = behaviour;
    this.#server = this.#newServer();
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/signals`;
  }

  /** Starts to listen. After `stop`, it uses the same port again. */
  async start(): Promise<this> {
    // The system gives this port to no other program, so it is still free after `stop`.
    this.#port ||= await freePort();
    this.#server = this.#newServer();
    await new Promise<void>((resolve) => this.#server.listen(this.#port, "127.0.0.1", resolve));
    return this;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Returns how many signals were accepted more than once, and how often in all. */
  get repeated(): number {
    return [...this.accepted.values()].reduce((sum, ids) => sum + ids.length - 1, 0);
  }

  /** Returns the sessions whose signals have more than one id. There must be none, because each session ends once. */
  get ambiguous(): readonly string[] {
    return [...this.accepted].filter(([, ids]) => new Set(ids).size > 1).map(([sessionId]) => sessionId);
  }

  missing(sessions: Iterable<string>): readonly string[] {
    return [...sessions].filter((sessionId) => !this.accepted.has(sessionId));
  }

  #newServer(): Server {
    return createServer((request, response) => {
      if (request.url !== "/signals") this.redirected = true;
      let body = "";
      request.on("data", (chunk) => {
        body += chunk;
      });
      request.on("end", () => this.#respond(request, response, body));
    });
  }

  #respond({ headers, socket }: IncomingMessage, response: ServerResponse, body: string): void {
    const { behaviour } = this;
    if (behaviour === "silent") return;
    if (behaviour === "garbage") return void socket.end("\u0000garbage of a broken machine\r\n\r\n");
    if (typeof behaviour === "number") {
      response.writeHead(behaviour, behaviour === 302 ? { location: "/elsewhere" } : {}).end();
      return;
    }
    const { data } = JSON.parse(body) as { readonly data: { readonly session_id: string } };
    const ids = this.accepted.get(data.session_id) ?? [];
    this.accepted.set(data.session_id, [...ids, String(headers["webhook-id"])]);
    if (behaviour === "cut") socket.destroy();
    else if (behaviour === "slow") setTimeout(() => response.end(), SLOW_MS);
    else response.end();
    this.onAccepted(data.session_id);
  }
}
