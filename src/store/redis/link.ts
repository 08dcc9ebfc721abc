/** The way to Redis: whether it may be used, what is said of its troubles, and how a script is run. */
import { StoreUnavailable } from "../../session/ports.ts";
import { type Client, connect, disconnect } from "./connection.ts";
import { isUnknownScript, translate } from "./failure.ts";
import { checkFitness, RedisRefused, refusedCredentials } from "./fitness.ts";
import { loadScripts, type Scripts, type Verb } from "./scripts.ts";
import { createSender, type Sender } from "./send.ts";
import type { RedisTarget } from "./url.ts";

export type LinkOptions = {
  readonly target: RedisTarget;
  /** How long a command may take, ms. */
  readonly commandTimeout: number;
  readonly log?: (level: "info" | "warn", message: string) => void;
  /** Called when a Redis that was not there at the start turns out to be unfit. */
  readonly onRefused?: (refusal: RedisRefused) => void;
  /** For tests, which bring a clock that they can move. */
  readonly scripts?: Scripts;
};

export class Link {
  readonly client: Client;
  readonly #options: LinkOptions;
  readonly #scripts: Scripts;
  readonly #sender: Sender;
  readonly #clustered: boolean;
  /** Why no script may be run: not checked yet, found unfit, or closed. */
  #obstacle: Error | undefined = new Error("not connected yet");
  #started = false;
  #closed = false;
  #trouble = "";

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#scripts = options.scripts ?? loadScripts();
    this.client = connect(options.target, options.commandTimeout);
    this.#sender = createSender(options.commandTimeout);
    this.#clustered = options.target.kind === "cluster";
  }

  /**
   * Resolves when Redis has been found fit and `others` are ready, or after a while.
   *
   * @throws RedisRefused
   */
  async start(others: Promise<unknown>): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const patience = setTimeout(resolve, this.#options.commandTimeout);
    const refuse = (refusal: RedisRefused) => {
      this.#obstacle = refusal;
      if (this.#started) this.#options.onRefused?.(refusal);
      else reject(refusal);
    };
    this.client.on("ready", () => {
      Promise.all([this.#check(), others]).then(
        () => resolve(),
        (error: unknown) => {
          if (error instanceof RedisRefused) refuse(error);
          else this.#warn(error);
        },
      );
    });
    this.client.on("error", (error: unknown) => {
      this.#warn(error);
      const refusal = refusedCredentials(error);
      if (refusal !== undefined && !this.#started) refuse(refusal);
    });
    try {
      await promise;
    } finally {
      clearTimeout(patience);
      this.#started = true;
    }
  }

  /**
   * Runs the script of a verb: one command, where Redis knows the script.
   *
   * @param tags the hash tags of partitions; in a cluster, of one
   * @throws StoreUnavailable
   */
  async run(verb: Verb, tags: readonly string[], args: readonly (string | number | Buffer)[]): Promise<unknown> {
    if (this.#obstacle !== undefined) throw new StoreUnavailable(`Redis: ${this.#obstacle.message}`);
    const { sha, text } = this.#scripts[verb];
    // Two keys that never exist: while a slot moves from node to node, Redis will then say so (TRYAGAIN) instead of
    // running a script where some of the partition's keys are and others are not.
    const keys = this.#clustered ? tags.flatMap((tag) => [tag, `${tag}-`]) : tags;
    try {
      return await this.#sender.send(this.client, "evalsha", [sha, keys.length, keys, args]);
    } catch (error) {
      if (!isUnknownScript(error)) throw translate(error);
    }
    try {
      return await this.#sender.send(this.client, "eval", [text, keys.length, keys, args]); // known from now on
    } catch (error) {
      throw translate(error);
    }
  }

  async ping(): Promise<void> {
    if (this.client.status !== "ready") throw new StoreUnavailable("Redis: not connected");
    try {
      await this.#check();
    } catch (error) {
      throw error instanceof RedisRefused ? new StoreUnavailable(error.message) : translate(error);
    }
  }

  close(): void {
    this.#closed = true;
    this.#obstacle = new Error("closed");
    this.#sender.close();
    disconnect(this.client);
  }

  /** Whether this Redis may be used, asked anew: an operator may have mended it, or broken it. */
  async #check(): Promise<void> {
    await checkFitness(this.client, this.#sender);
    if (this.#closed) throw new StoreUnavailable("Redis: closed");
    if (this.#obstacle !== undefined || this.#trouble !== "") this.#options.log?.("info", "connected to Redis");
    this.#obstacle = undefined;
    this.#trouble = "";
  }

  /** Tells of trouble, once while it stays the same. */
  #warn(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    if (message !== this.#trouble) this.#options.log?.("warn", `Redis: ${message}`);
    this.#trouble = message;
  }
}
