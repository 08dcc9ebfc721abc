/**
 * The way to Redis: whether it may be used, what is said of its troubles, and how a script is run.
 *
 * Whether it may be used is asked when a connection stands, before anything else is sent, and every RECHECK: a
 * policy or a permission that changes while it is in use is known so much later, and again when it has been mended.
 */

import type { RedisTarget } from "../../config/redis-url.ts";
import { StoreRefused, StoreUnavailable } from "../../session/ports.ts";
import { type Client, connect, disconnect } from "./connection.ts";
import { isUnknownScript, translate } from "./failure.ts";
import { checkFitness, refusedCredentials } from "./fitness.ts";
import { neededCommands } from "./permissions.ts";
import { loadScripts, type Scripts, type Verb } from "./scripts.ts";
import { createSender, type Sender } from "./send.ts";

export type LinkOptions = {
  readonly target: RedisTarget;
  /** How long a command may take, ms. */
  readonly commandTimeout: number;
  /** How many replicas must have an ending before it is acknowledged. */
  readonly waitReplicas: number;
  readonly log?: (level: "info" | "warn" | "error", message: string) => void;
  /** For tests, which bring a clock that they can move. */
  readonly scripts?: Scripts;
};

/** How often Redis is asked anew whether it may be used, ms. */
const RECHECK = 2_000;

export class Link {
  readonly client: Client;
  readonly #options: LinkOptions;
  readonly #scripts: Scripts;
  readonly #sender: Sender;
  readonly #clustered: boolean;
  readonly #needed: readonly string[];
  #recheck: NodeJS.Timeout | undefined;
  /** Why no script may be run: not checked yet, found unfit, or closed. */
  #obstacle: Error | undefined = new Error("not connected yet");
  /** Checks and losses of the connection are numbered: of two at a time, the later one knows. */
  #asked = 0;
  #known = 0;
  #closed = false;
  #trouble = "";

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#scripts = options.scripts ?? loadScripts();
    this.client = connect(options.target, options.commandTimeout);
    this.#sender = createSender(options.commandTimeout);
    this.#clustered = options.target.kind === "cluster";
    this.#needed = neededCommands(this.#scripts, options.target, options.waitReplicas);
  }

  /**
   * Resolves when Redis has been found fit and `others` are ready, or after a while.
   *
   * @throws StoreRefused
   */
  async start(others: Promise<unknown>): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const patience = setTimeout(resolve, this.#options.commandTimeout);
    let started = false;
    const fail = (error: unknown) => {
      const refusal = refusedCredentials(error);
      if (refusal !== undefined && !started) reject(refusal);
      else this.#tell(error);
    };
    const look = () => {
      if (this.client.status !== "ready") return;
      Promise.all([this.#check(), others]).then(() => resolve(), fail);
    };
    this.client.on("ready", look);
    this.client.on("close", () => {
      this.#known = ++this.#asked; // what is still to come of a check was said before
      this.#obstacle ??= new Error("the connection was lost");
    });
    this.client.on("error", fail);
    this.#recheck = setInterval(look, RECHECK).unref();
    try {
      await promise;
    } finally {
      clearTimeout(patience);
      started = true;
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

  /** @throws StoreUnavailable; StoreRefused when it must not be used */
  async ping(): Promise<void> {
    if (this.client.status !== "ready") throw new StoreUnavailable("Redis: not connected");
    try {
      await this.#check();
    } catch (error) {
      throw translate(error);
    }
  }

  close(): void {
    this.#closed = true;
    this.#obstacle = new Error("closed");
    clearInterval(this.#recheck);
    this.#sender.close();
    disconnect(this.client);
  }

  /** Whether this Redis may be used, asked anew: an operator may have mended it, or broken it. */
  async #check(): Promise<void> {
    const number = ++this.#asked;
    try {
      const trouble = await checkFitness(this.client, this.#sender, this.#needed);
      this.#learn(number, undefined);
      if (trouble !== undefined) throw trouble;
    } catch (error) {
      if (error instanceof StoreRefused) this.#learn(number, error);
      throw error;
    }
    if (this.#trouble !== "") this.#options.log?.("info", "Redis: serves again");
    this.#trouble = "";
  }

  #learn(number: number, obstacle: StoreRefused | undefined): void {
    if (this.#closed) throw new StoreUnavailable("Redis: closed");
    if (number < this.#known) return;
    this.#known = number;
    this.#obstacle = obstacle;
  }

  /** Tells of trouble, once while it stays the same. */
  #tell(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    if (message !== this.#trouble && !this.#closed) {
      this.#options.log?.(error instanceof StoreRefused ? "error" : "warn", `Redis: ${message}`);
    }
    this.#trouble = message;
  }
}
