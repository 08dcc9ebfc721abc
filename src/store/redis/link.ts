/**
 * The way to Redis: whether it may be used, what is said of its troubles, and how a script is run.
 *
 * Whether it may be used is asked when a connection stands, before anything else is sent, and every RECHECK: a
 * policy or a permission that changes while it is in use is known so much later, and again when it has been mended.
 */

import type { RedisTarget } from "../../config/redis-url.ts";
import { StoreRefused, StoreUnavailable } from "../../session/ports.ts";
import { createStallGuard, type StallGuard } from "../stall.ts";
import { type Client, connect, disconnect } from "./connection.ts";
import { isUnknownScript, timeOfLate, translate } from "./failure.ts";
import { checkFitness, refusedCredentials } from "./fitness.ts";
import { NodeClock, type Window } from "./node-clock.ts";
import { TAGS } from "./partitions.ts";
import { neededCommands } from "./permissions.ts";
import { loadScripts, type Scripts, type Verb } from "./scripts.ts";
import { createSender, type Sender } from "./send.ts";

export type LinkOptions = {
  readonly target: RedisTarget;
  /** How long a command may take, ms. */
  readonly commandTimeout: number;
  /** How many replicas must have an ending before it is acknowledged. */
  readonly waitReplicas: number;
  /** R of rotation.ts, ms. */
  readonly reuseInterval: number;
  readonly log?: (level: "info" | "warn" | "error", message: string) => void;
  /** For tests, which bring a clock that they can move. */
  readonly scripts?: Scripts;
  /** Our own clock, ms: never set, and not that of the day. */
  readonly monotonic?: () => number;
};

type Arguments = readonly (string | number | Buffer)[];

/** How often Redis is asked anew whether it may be used, ms. */
const RECHECK = 2_000;

export class Link {
  readonly client: Client;
  readonly #options: LinkOptions;
  readonly #scripts: Scripts;
  readonly #sender: Sender;
  readonly #clustered: boolean;
  readonly #needed: readonly string[];
  readonly #monotonic: () => number;
  readonly #stall: StallGuard;
  /** Of the one node; in a cluster by hash tag, since a partition may move to another node at any time. */
  readonly #clock: NodeClock;
  readonly #clocks = new Map<string, NodeClock>();
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
    this.#monotonic = options.monotonic ?? (() => performance.now());
    const { reuseInterval, commandTimeout } = options;
    this.#stall = createStallGuard(this.#monotonic, reuseInterval / 4 || Number.POSITIVE_INFINITY);
    this.#clock = new NodeClock(commandTimeout);
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
      Promise.all([this.#check().then(() => this.#readClock()), others]).then(() => resolve(), fail);
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
   * Runs the script of a verb: one command, where Redis knows the script and we know its clock.
   *
   * A command acts before its caller is given up on, or not at all. One that was late for Redis although its reply is here in
   * time found a clock that is unknown, was set, or belongs to another node: nothing was done, and it is sent once more.
   *
   * @param tags the hash tags of partitions; in a cluster, of one
   * @throws StoreUnavailable
   */
  async run(verb: Verb, tags: readonly string[], args: Arguments): Promise<unknown> {
    if (this.#obstacle !== undefined) throw new StoreUnavailable(`Redis: ${this.#obstacle.message}`);
    const sentAt = this.#monotonic();
    this.#stall.check(sentAt);
    const clock = this.#clockOf(tags);
    try {
      return await this.#execute(verb, tags, args, clock.window(sentAt));
    } catch (error) {
      const time = timeOfLate(error);
      if (time === undefined) throw translate(error);
      const now = this.#monotonic();
      clock.learn(time, sentAt, now);
      if (now - sentAt > 2 * this.#options.commandTimeout) throw translate(error);
    }
    try {
      return await this.#execute(verb, tags, args, clock.window(this.#monotonic()));
    } catch (error) {
      throw translate(error);
    }
  }

  /** The time of the node that holds these tags, as a reply of a command sent at `sentAt` has it. */
  learn(tags: readonly string[], time: number, sentAt: number): void {
    this.#clockOf(tags).learn(time, sentAt, this.#monotonic());
  }

  now(): number {
    return this.#monotonic();
  }

  async #execute(verb: Verb, tags: readonly string[], args: Arguments, { from, until }: Window): Promise<unknown> {
    const { sha, text } = this.#scripts[verb];
    // Two keys that never exist: while a slot moves from node to node, Redis will then say so (TRYAGAIN) instead of
    // running a script where some of the partition's keys are and others are not.
    const keys = this.#clustered ? tags.flatMap((tag) => [tag, `${tag}-`]) : tags;
    try {
      return await this.#sender.send(this.client, "evalsha", [sha, keys.length, keys, args, from, until]);
    } catch (error) {
      if (!isUnknownScript(error)) throw error;
    }
    return await this.#sender.send(this.client, "eval", [text, keys.length, keys, args, from, until]); // known from now on
  }

  #clockOf(tags: readonly string[]): NodeClock {
    if (!this.#clustered) return this.#clock;
    const tag = tags[0] ?? "";
    const known = this.#clocks.get(tag);
    if (known !== undefined) return known;
    const clock = new NodeClock(this.#options.commandTimeout);
    this.#clocks.set(tag, clock);
    return clock;
  }

  /** Asks the one node for the time. In a cluster every reading of the log brings that of its partition. */
  async #readClock(): Promise<void> {
    if (this.#clustered) return;
    const sentAt = this.#monotonic();
    const reply = await this.#sender.send(this.client, "eval", [this.#scripts.sync.text, 1, TAGS[0] ?? ""]);
    this.learn([], Number(reply), sentAt);
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
    this.#stall.close();
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
