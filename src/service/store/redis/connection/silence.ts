/**
 * Detects dead connections that were never closed, because a machine or a network is gone, or because a reply does not end: then all that
 * Redis sends later counts as part of it.
 *
 * ioredis can do that with a timer of its own. But that timer also expires if this process was suspended, and ioredis then drops a healthy
 * connection before its replies have been read. So silence is counted in turns (platform/clock/turns.ts), the time in which this process
 * could read. This adds no cost to a command.
 */
import type { Redis } from "ioredis";
import { TURN_MS, turns } from "../../../../platform/clock/turns.ts";

/** A connection is closed if the oldest of its commands gets no whole reply for this many command timeouts. */
const COMMAND_TIMEOUTS = 2;

/** Closes each connection of a client that is silent for too long, from now on. @param commandTimeoutMs in ms */
export function giveUpWhenSilent(client: Redis, commandTimeoutMs: number): void {
  const mostTurns = Math.ceil((COMMAND_TIMEOUTS * commandTimeoutMs) / TURN_MS);
  client.on("connect", () => {
    const { stream } = client;
    let oldest = client.commandQueue.peekAt(0);
    let silentTurns = 0;
    const stop = turns.follow(() => {
      const before = oldest;
      oldest = client.commandQueue.peekAt(0);
      silentTurns = oldest !== undefined && oldest === before ? silentTurns + 1 : 0;
      if (silentTurns > mostTurns) stream.destroy(new Error(`no reply was read for ${mostTurns * TURN_MS} ms`));
    });
    stream.once("close", stop);
  });
}
