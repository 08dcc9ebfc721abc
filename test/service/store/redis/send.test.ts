/** What the sender of commands leaves behind in memory. */
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Command, Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { createSender } from "../../../../src/service/store/redis/send.ts";

/** Few of the commands wait when garbage is collected. Those that do are promoted, as they should be. */
const IN_FLIGHT = 2;
const COMMANDS = 20_000;
const COMMANDS_PER_COLLECTION = 200;
const ARGUMENT_BYTES = 1_000;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as (options: { readonly type: "minor" }) => void;
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
  const exchange = async (count: number) => {
    for (let i = 0; i < count; i++) {
      void sender.sendCommand(client, new Command("get", [String(i).padEnd(ARGUMENT_BYTES, "x")]));
      if (client.commands.length > IN_FLIGHT) client.commands.shift()?.resolve("reply");
      if (i % COMMANDS_PER_COLLECTION > 0) continue;
      await new Promise(setImmediate);
      collect({ type: "minor" });
    }
  };
  await exchange(COMMANDS / 4);
  const before = oldGeneration();
  await exchange(COMMANDS);
  expect((oldGeneration() - before) / COMMANDS).toBeLessThan(ARGUMENT_BYTES / 10);
});
