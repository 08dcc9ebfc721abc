/**
 * Asks the Sentinels for the master, and follows what they announce. ioredis hears of a failover only from Sentinels whose connections have
 * never been lost. After all Sentinels were restarted, a client would stay with a master that was replaced for as long as that one accepts
 * writes, which are then lost. So these connections are opened again, and each that was asks whether there was a failover meanwhile.
 */
import { type Redis, type RedisOptions, SentinelConnector } from "ioredis";
import { SentinelFault } from "./failure.ts";

type Address = { readonly host: string; readonly port: number };

/** What ioredis declares as private. */
type Inner = {
  readonly failoverDetector?: { readonly sentinels: readonly { readonly address: Address; readonly client: Redis }[] };
  readonly options: RedisOptions;
  connect(emit: (event: string, error: Error) => void): Promise<unknown>;
  disconnect(): void;
  connectToSentinel(sentinel: Address, options?: RedisOptions): Redis;
  /** Returns the master that a Sentinel names. */
  resolve(sentinel: Address): Promise<Address | null>;
};

const Connector = SentinelConnector as unknown as new (options: unknown) => Inner;

/** The connections on which a client hears of failovers. */
export const announcersOf = (client: Redis): readonly Redis[] =>
  (client as unknown as { connector?: Inner }).connector?.failoverDetector?.sentinels.map((each) => each.client) ?? [];

/** The option `Connector` of a client of ioredis. */
export class MasterConnector extends Connector {
  readonly #name: string;
  /** Why the Sentinels of this round have not named the master. */
  #cause: Error | undefined;
  /** The failure of the connection to the Sentinel that is asked: ioredis only says that it was closed. */
  #failure: Error | undefined;
  #master: Address | undefined;

  constructor(options: RedisOptions) {
    super(options);
    this.#name = options.name ?? "";
  }

  /** Reports rounds in which no Sentinel names the master. The errors of ioredis differ each time, by the pause until the next round. */
  override connect(emit: (event: string, error: Error) => void): Promise<unknown> {
    return super.connect((event, error) => {
      if (event !== "error") return emit(event, error);
      emit(event, new SentinelFault(this.#name, this.#cause));
      this.#cause = undefined;
    });
  }

  override async resolve(sentinel: Address): Promise<Address | null> {
    this.#failure = undefined;
    try {
      const master = await super.resolve(sentinel);
      this.#master = master ?? this.#master;
      return master;
    } catch (error) {
      const cause = this.#failure ?? (error as Error);
      if (this.#cause?.name !== "ReplyError") this.#cause = cause;
      throw error;
    }
  }

  /** @param options only those of a connection that listens for failovers */
  override connectToSentinel(sentinel: Address, options?: RedisOptions): Redis {
    // ioredis would subscribe again by itself, and a failure of that would end the process: nothing handles the rejection.
    const client = super.connectToSentinel(sentinel, options && { ...options, autoResubscribe: false });
    const { options: own } = this;
    const descriptor = { get: () => own.sentinelPassword, enumerable: true, configurable: true };
    Object.defineProperty(client.options, "password", descriptor); // It may have changed when the connection is opened again.
    client.on("error", (error) => (this.#failure = error));
    if (options !== undefined) client.once("close", () => client.on("ready", () => void this.#catchUp(client)));
    return client;
  }

  /** Leaves the master if most Sentinels that reply name another one. The first to reply after a restart may not know of a failover yet. */
  async #catchUp(client: Redis): Promise<void> {
    try {
      await client.subscribe("+switch-master"); // What is announced from now on arrives.
    } catch {
      return; // The connection is lost again, or the Sentinel is silent.
    }
    const { failoverDetector } = this;
    const asked = failoverDetector?.sentinels.map(({ address }) => super.resolve(address)) ?? [];
    const replies = (await Promise.allSettled(asked)).flatMap((reply) =>
      reply.status === "fulfilled" && reply.value !== null ? [reply.value] : [],
    );
    const others = replies.filter(({ host, port }) => host !== this.#master?.host || port !== this.#master?.port);
    if (failoverDetector === this.failoverDetector && others.length * 2 > replies.length) this.disconnect();
  }
}
