/**
 * Generates the load in a separate process, with raw sockets, keep-alive and one request in flight per connection. It reads only the
 * status, the end and the refresh token of each response, because it shares a core with Redis and must use little of it.
 */
import { connect, type Socket } from "node:net";
import { GrpcConnection } from "./grpc-connection.ts";
import type { Load, Order, Plan, Slice } from "./plan.ts";

const CONNECTIONS = 32;
/** How long to wait for the last responses, in ms. */
const PATIENCE = 5_000;

export type Reply = { readonly status: string; readonly cookie: string | undefined };

/** Returns a whole response, or undefined while a part of it is missing. */
function readReply(text: string): Reply | undefined {
  const body = text.indexOf("\r\n\r\n") + 4;
  if (body < 4) return undefined;
  const head = text.slice(0, body);
  const [, length] = /\r\ncontent-length: *(\d+)/i.exec(head) ?? [];
  const whole = length === undefined ? text.endsWith("\r\n0\r\n\r\n") : text.length - body >= Number(length);
  if (!whole) return undefined;
  const successor = /\r\nset-cookie: *refresh_token=([^;]+)/i.exec(head) ?? /"refresh_token":"([^"]+)"/.exec(text);
  return { status: text.slice(9, 12), cookie: successor?.[1] };
}

/** A connection of a client, with one request in flight. */
export interface Connection {
  /** @param settle receives the response; undefined if the connection is lost */
  send(request: string, settle: (response: Reply | undefined) => void): void;
  close(): void;
}

class Http1Connection implements Connection {
  readonly #socket: Socket;
  #text = "";
  #settle: ((response: Reply | undefined) => void) | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => {
      this.#text += chunk.toString("latin1");
      const response = readReply(this.#text);
      if (response !== undefined) this.#done(response);
    });
    socket.on("close", () => this.#done(undefined));
    socket.on("error", () => {});
  }

  static open(port: number): Promise<Http1Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true });
      socket.once("error", reject).once("connect", () => resolve(new Http1Connection(socket)));
    });
  }

  send(request: string, settle: (response: Reply | undefined) => void): void {
    this.#settle = settle;
    this.#text = "";
    if (this.#socket.destroyed) this.#done(undefined);
    else this.#socket.write(request, "latin1");
  }

  close(): void {
    this.#socket.destroy();
  }

  #done(response: Reply | undefined): void {
    const settle = this.#settle;
    this.#settle = undefined;
    settle?.(response);
  }
}

/**
 * The credentials that the connections of each plan present next, by the name of the plan. They are kept until the next turn of that plan.
 */
const jars = new Map<string, { readonly plan: Plan; readonly credentials: string[] }>();

async function run({ name, seconds, rate }: Slice): Promise<Load> {
  const jar = jars.get(name);
  if (jar === undefined) throw new Error(`no plan ${name}`);
  const { plan, credentials } = jar;
  const { open } = plan.isGrpc ? GrpcConnection : Http1Connection;
  const connections: Connection[] = await Promise.all(Array.from({ length: CONNECTIONS }, () => open(plan.port)));
  const responses: Record<string, number> = {};
  const latencies: number[] = [];
  const begin = performance.now();
  const deadline = begin + seconds * 1000;
  let last = begin;
  let inFlight = 0;

  await new Promise<void>((resolve) => {
    const idle: number[] = [];
    /** The times at which requests were due but no connection was idle. They are sent as soon as a connection is idle. */
    const late: number[] = [];
    let offered = 0;
    let over = false;

    const finish = (): void => {
      over = true;
      if (inFlight === 0) resolve();
    };
    const send = (index: number, due: number): void => {
      const credential = plan.use === "spend" ? credentials.pop() : credentials[index];
      if (credential === undefined) {
        finish();
        return;
      }
      inFlight++;
      connections[index]?.send(plan.head + credential + plan.tail, (response) => {
        inFlight--;
        last = performance.now();
        latencies.push(last - due);
        const status = response?.status ?? "lost";
        responses[status] = (responses[status] ?? 0) + 1;
        if (plan.use === "adopt" && response?.cookie !== undefined) credentials[index] = response.cookie;
        if (response !== undefined) next(index);
        else if (over && inFlight === 0) resolve(); // If the connection is lost, no further request is sent on it.
      });
    };
    const next = (index: number): void => {
      const due = rate === undefined ? last : late.shift();
      if (over || last >= deadline) finish();
      else if (due === undefined) idle.push(index);
      else send(index, due);
    };
    const offer = (): void => {
      const now = performance.now();
      if (now >= deadline) {
        finish();
        return;
      }
      for (const due = ((now - begin) * (rate ?? 0)) / 1000; offered < due; offered++) {
        const index = idle.pop();
        if (index === undefined) late.push(now);
        else send(index, now);
      }
      setTimeout(offer, 1);
    };

    for (const index of connections.keys()) next(index);
    if (rate !== undefined) offer();
    setTimeout(resolve, seconds * 1000 + PATIENCE).unref();
  });

  for (const connection of connections) connection.close();
  if (inFlight > 0) responses.lost = (responses.lost ?? 0) + inFlight;
  latencies.sort((a, b) => a - b);
  const elapsed = (last - begin) / 1000;
  const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? Number.NaN;
  return { responses, seconds: elapsed, rate: latencies.length / elapsed, p50: at(0.5), p99: at(0.99) };
}

process.on("message", (order: Order) => {
  if ("plan" in order) {
    jars.set(order.plan.name, { plan: order.plan, credentials: [...order.plan.credentials] });
    process.send?.("ready");
  } else {
    run(order.slice).then(
      (result) => process.send?.(result),
      (error: unknown) => {
        throw error;
      },
    );
  }
});
process.once("disconnect", () => process.exit(0));
