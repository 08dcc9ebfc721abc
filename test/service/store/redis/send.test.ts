/** What the sender of commands leaves behind in memory. */
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Command, Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { createSender } from "../../../../src/service/store/redis/send.ts";

/** Few of the commands wait when garbage is collected. Those that do are promoted, as they should be. */
const IN_FLIGHT = 2;
const COMMANDS_PER_COLLECTION = 200;
const COMMANDS_PER_ROUND = 4_000;
/** Code that V8 has not optimized yet keeps commands alive by itself. */
const ROUNDS_BEFORE = 5;
const ROUNDS = 7;
const ARGUMENT_BYTES = 1_000;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as (options: { readonly type: "minor" | "major" }) => void;
const oldGeneration = () =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space")?.space_used_size ?? Number.NaN;

/** A client that is never connected, whose commands the test replies to. */
class Held extends Redis {
  readonly commands: Command[] = [];

  override sendCommand(command: Command): Promise<unknown> {
    this.commands.push(command);
    return command.promise;
  }
}

test("collections of the young generation free a command that has its reply", async () => {
  const client = new Held({ lazyConnect: true });
  const sender = createSender(60_000);
  onTestFinished(() => {
    sender.close();
    client.disconnect();
  });
  /** Returns how many bytes are promoted for each command. */
  const exchange = async () => {
    const before = oldGeneration();
    for (let i = 0; i < COMMANDS_PER_ROUND; i++) {
      void sender.sendCommand(client, new Command("get", [String(i).padEnd(ARGUMENT_BYTES, "x")]));
      if (client.commands.length > IN_FLIGHT) client.commands.shift()?.resolve("reply");
      if (i % COMMANDS_PER_COLLECTION > 0) continue;
      await new Promise(setImmediate);
      collect({ type: "minor" });
    }
    return (oldGeneration() - before) / COMMANDS_PER_ROUND;
  };
  for (let round = 0; round < ROUNDS_BEFORE; round++) await exchange();
  collect({ type: "major" });
  const promoted: number[] = [];
  for (let round = 0; round < ROUNDS; round++) promoted.push(await exchange());
  // A full collection may fall into any round, and so may other work of the process.
  const median = promoted.toSorted((a, b) => a - b)[(ROUNDS - 1) / 2];
  expect(median).toBeLessThan(ARGUMENT_BYTES / 2);
});
