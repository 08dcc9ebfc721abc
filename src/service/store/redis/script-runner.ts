/**
 * Runs scripts on Redis: checks whether it may be used, and logs its problems. The check runs when a connection is established,
 * before anything else is sent, and every two seconds, so that a changed policy or permission is noticed.
 */

import { steadyClock, turns } from "../../../platform/clock/turns.ts";
import type { RedisTarget } from "../../config/redis-url.ts";
import { StoreRefused, StoreUnavailable } from "../../session/ports.ts";
import { checkFitness, refusalAtStart } from "./checks/fitness.ts";
import { createClaim, type Owner } from "./checks/owner.ts";
import { neededCommands } from "./checks/permissions.ts";
import { type Client, disconnect } from "./connection/connection.ts";
import { createProblemLog, isUnknownScript, type LogLine, timeOfLate, translate } from "./connection/failure.ts";
import { type Argument, type CommandSender, createCommandSender, scriptCall } from "./connection/send.ts";
import type { ArgumentsOf, Verb } from "./encoding/arguments.ts";
import { Clocks, type Window } from "./partitions.ts";
import { loadScripts, type Scripts } from "./scripts.ts";

export type ScriptRunnerOptions = {
  readonly target: RedisTarget;
  readonly commandTimeoutMs: number;
  /** How many replicas must have received a login, an update or an ending before it is acknowledged. */
  readonly waitReplicas: number;
  /** The reuse interval of refresh tokens (`R` in session/rotation/rotation.ts), in ms. */
  readonly reuseIntervalMs: number;
  /** Returns the name of the deployment. Absent, as in tests, if it shares the keys with every other one. */
  readonly owner?: () => Owner;
  readonly log?: LogLine;
  /** The scripts with another clock, for tests that move the time. */
  readonly scripts?: Scripts;
  /** The process's monotonic clock, in ms. Tests replace it. */
  readonly steady?: () => number;
  /** How often the check is repeated, in ms. Default: 2 s; tests change it. */
  readonly recheckMs?: number;
};

/**
 * The first attempt to run a script. At the time `readUntilMs`, this process had not read the request that needs the script yet
 * (platform/clock/turns.ts): the time since then is at least the age of the request.
 */
type Attempt = { readonly window: Window; readonly sentAt: number; readonly readUntilMs: number };

const RECHECK_INTERVAL_MS = 2_000;
/** How often a command that Redis did not execute is sent again. */
const RESENDINGS = 4;

export class ScriptRunner {
  readonly client: Client;
  readonly clustered: boolean;
  readonly #options: ScriptRunnerOptions;
  readonly #scripts: Scripts;
  readonly #sender: CommandSender;
  readonly #needed: readonly string[];
  readonly #steady: () => number;
  readonly #resendMs: number;
  readonly #clocks: Clocks;
  readonly #claim: () => Promise<void>;
  #recheck: NodeJS.Timeout | undefined;
  /** Why no script may run: Redis is not checked yet, the check failed, or the store is closed. */
  #obstacle: Error | undefined = new Error("not connected yet");
  /** Checks and losses of the connection are numbered. A check's result is used only if no check or loss with a higher number is known. */
  #asked = 0;
  #known = 0;
  #closed = false;
  readonly #problems: ReturnType<typeof createProblemLog>;

  constructor(options: ScriptRunnerOptions, client: Client) {
    this.#options = options;
    this.#scripts = options.scripts ?? loadScripts();
    this.#problems = createProblemLog(options.log);
    this.client = client;
    this.#sender = createCommandSender(options.commandTimeoutMs);
    this.clustered = options.target.kind === "cluster";
    this.#steady = options.steady ?? steadyClock;
    this.#resendMs = Math.max(options.reuseIntervalMs / 4, 2 * options.commandTimeoutMs);
    this.#clocks = new Clocks({
      clustered: this.clustered,
      commandTimeoutMs: options.commandTimeoutMs,
      steady: this.#steady,
      ask: (tag, args) => this.#sync(tag, args),
    });
    this.#claim = createClaim(client, this.#sender, options);
    this.#needed = neededCommands(this.#scripts, options.target, options.waitReplicas);
  }

  /** Resolves when Redis has passed the check and `others` has resolved, or after a time limit. @throws StoreRefused */
  async start(others: Promise<unknown>): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const cancelPatience = turns.after(this.#options.commandTimeoutMs, resolve);
    let started = false;
    const fail = async (error: unknown) => {
      const refusal = started ? undefined : await refusalAtStart(error, this.client, this.#sender, this.#needed);
      if (refusal !== undefined && !started) reject(refusal);
      else if (!this.#closed) this.#problems.report(error);
    };
    const look = () => {
      if (this.client.status !== "ready") return;
      Promise.all([this.#check().then(() => this.#clocks.settleAll()), others]).then(() => resolve(), fail);
    };
    this.client.on("ready", look);
    this.client.on("close", () => {
      this.#known = ++this.#asked; // A new number makes the results of checks that are still running outdated.
      this.#obstacle ??= new Error("the connection was lost");
    });
    this.client.on("error", fail);
    this.#recheck = setInterval(look, this.#options.recheckMs ?? RECHECK_INTERVAL_MS).unref();
    try {
      await promise;
    } finally {
      cancelPatience();
      started = true;
    }
  }

  /**
   * Runs the script of a name. This takes one command if Redis knows the script and this process knows the clock of the node.
   *
   * A command acts before its caller stops waiting, or not at all. Redis may refuse a command as late although the caller still waits:
   * because the clock of the node is unknown, was set, or belongs to another node, or because this process delayed the command. Such a
   * command has done nothing, and is sent again unless its request is too old.
   *
   * @param tags the hash tags of partitions; in a cluster, of one
   * @throws StoreUnavailable
   */
  async run<V extends Verb>(verb: V, tags: readonly string[], args: ArgumentsOf<V>): Promise<unknown> {
    if (this.#obstacle !== undefined) throw new StoreUnavailable(`Redis: ${this.#obstacle.message}`);
    const { readUntilMs } = turns;
    const clock = this.#clocks.of(tags[0] ?? "");
    const sentAt = this.#steady();
    const window = clock.window(sentAt);
    try {
      // Nearly every call returns with this statement. An additional promise would cost each refresh half a microsecond.
      return await this.#send("evalsha", this.#scripts[verb].sha, tags, args, window);
    } catch (error) {
      return await this.#runAgain(verb, tags, args, { window, sentAt, readUntilMs }, error);
    }
  }

  async #runAgain(verb: Verb, tags: readonly string[], args: readonly Argument[], first: Attempt, error: unknown) {
    const { text } = this.#scripts[verb];
    const tag = tags[0] ?? "";
    const clock = this.#clocks.of(tag);
    let { window, sentAt } = first;
    let failure = error;
    for (let left = RESENDINGS; left > 0; left--) {
      const time = timeOfLate(failure);
      if (time === undefined && !isUnknownScript(failure)) break;
      try {
        if (time !== undefined) {
          clock.observe(time, sentAt, this.#steady());
          if (turns.behindMs(first.readUntilMs) > this.#resendMs) break;
          await this.#clocks.settle(tag);
          sentAt = this.#steady();
          window = clock.window(sentAt);
        }
        return await this.#send("eval", text, tags, args, window); // After EVAL, Redis knows the script, so later calls can use EVALSHA.
      } catch (next) {
        failure = next;
      }
    }
    throw translate(failure);
  }

  get time(): Clocks["time"] {
    return this.#clocks.time;
  }

  now(): number {
    return this.#steady();
  }

  #send(
    command: "evalsha" | "eval",
    script: string,
    tags: readonly string[],
    args: readonly Argument[],
    window: Window,
  ): Promise<unknown> {
    const { keyPrefix } = this.#options.target;
    const keys = this.clustered || keyPrefix !== undefined ? this.#keysOf(tags) : tags;
    const call = command === "evalsha" && !this.clustered ? scriptCall(script, keys, args, window) : undefined;
    if (call !== undefined) return this.#sender.sendCommand(this.client, call);
    const { from, until, shift } = window;
    return this.#sender.send(this.client, command, [script, keys.length, ...keys, ...args, from, until, shift]);
  }

  /** Runs lua/sync.lua, which is never refused as late. */
  async #sync(tag: string, args: readonly Argument[]): Promise<unknown> {
    const { sha, text } = this.#scripts.sync;
    const keys = this.#keysOf([tag]);
    try {
      return await this.#sender.send(this.client, "evalsha", [sha, keys.length, keys, args]);
    } catch (error) {
      if (!isUnknownScript(error)) throw error;
      return this.#sender.send(this.client, "eval", [text, keys.length, keys, args]);
    }
  }

  /**
   * In a cluster, the keys of a script include, for each partition, two keys that never exist. While a slot moves from node to node,
   * Redis then refuses (TRYAGAIN) to run a script, instead of running it on a node that has only some of the partition's keys.
   */
  #keysOf(tags: readonly string[]): readonly string[] {
    const { keyPrefix } = this.#options.target;
    const keys = keyPrefix === undefined ? tags : tags.map((tag) => keyPrefix + tag);
    return this.clustered ? keys.flatMap((key) => [key, `${key}-`]) : keys;
  }

  /** Checks whether Redis responds. @throws StoreUnavailable; StoreRefused if it must not be used */
  async ping(): Promise<void> {
    if (this.client.status !== "ready") throw new StoreUnavailable("Redis: not connected");
    try {
      await this.#check();
      await this.#clocks.settleAll();
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

  /** Checks again whether this Redis may be used: an operator may have fixed or broken it. */
  async #check(): Promise<void> {
    const number = ++this.#asked;
    try {
      const fitness = await checkFitness(this.client, this.#sender, this.#needed, this.#problems.warnOnce);
      if (fitness.ok) await this.#claim();
      this.#learn(number, undefined);
      if (!fitness.ok) throw fitness.reason;
    } catch (error) {
      if (error instanceof StoreRefused) this.#learn(number, error);
      throw error;
    }
    this.#problems.resolve();
  }

  #learn(number: number, obstacle: StoreRefused | undefined): void {
    if (this.#closed) throw new StoreUnavailable("Redis: closed");
    if (number < this.#known) return;
    this.#known = number;
    this.#obstacle = obstacle;
  }
}
