/**
 * Prints how many bytes the sender of commands leaves behind in the old generation for each command that has its reply. It is a process of
 * its own, started with `--expose-gc --no-concurrent-recompilation`: code that V8 has not optimized keeps commands alive by itself, and so
 * does the state that other tests leave in a process.
 */
import { Command, Redis } from "ioredis";
import { createCommandSender } from "../../../../../src/service/store/redis/connection/send.ts";
import { oldGeneration } from "../../../../support/old-generation.ts";

/** Few of the commands wait when garbage is collected. Those that do are promoted, as they should be. */
const IN_FLIGHT = 2;
const COMMANDS_PER_COLLECTION = 200;
const COMMANDS_PER_ROUND = 4_000;
/** V8 optimizes the code in these rounds. */
const ROUNDS_BEFORE = 5;
const ROUNDS = 7;
const ARGUMENT_BYTES = 1_000;

const collect = (globalThis as unknown as { gc(options: { readonly type: "minor" | "major" }): void }).gc;

/** A client that is never connected, whose commands are replied to here. */
class Held extends Redis {
  readonly commands: Command[] = [];

  override sendCommand(command: Command): Promise<unknown> {
    this.commands.push(command);
    return command.promise;
  }
}

const client = new Held({ lazyConnect: true });
const sender = createCommandSender(60_000);

/** Returns how many bytes are promoted for each command. */
async function exchange(): Promise<number> {
  const before = oldGeneration();
  for (let i = 0; i < COMMANDS_PER_ROUND; i++) {
    void sender.sendCommand(client, new Command("get", [String(i).padEnd(ARGUMENT_BYTES, "x")]));
    if (client.commands.length > IN_FLIGHT) client.commands.shift()?.resolve("reply");
    if (i % COMMANDS_PER_COLLECTION > 0) continue;
    await new Promise(setImmediate);
    collect({ type: "minor" });
  }
  return (oldGeneration() - before) / COMMANDS_PER_ROUND;
}

for (let round = 0; round < ROUNDS_BEFORE; round++) await exchange();
collect({ type: "major" });
const promoted: number[] = [];
for (let round = 0; round < ROUNDS; round++) promoted.push(await exchange());
sender.close();
client.disconnect();
// A full collection may fall into any round.
const median = promoted.toSorted((a, b) => a - b)[(ROUNDS - 1) / 2];
console.log(JSON.stringify({ argumentBytes: ARGUMENT_BYTES, median }));
