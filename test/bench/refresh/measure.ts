/** Measures several servers (contenders) in alternation, so that disturbances of the machine affect all of them. */
import type { Contender } from "./contenders.ts";
import type { Result, Slice } from "./plan.ts";
import { cpuTime } from "./proc.ts";
import type { Generator } from "./processes.ts";
import type { Measured } from "./ratios.ts";

/** How long one contender runs in one round, in s. It is short, so that a disturbance affects all contenders. */
export const SLICE = 0.4;
/** After this many responses or this many seconds a server is warm. Compilation depends on the number of calls. */
const WARM = { responses: 10_000, seconds: 4 };
/**
 * The number of rounds in which requests are sent at a fixed rate. `OFFERED_SLICE` is how long each contender runs in such a round, in s.
 */
const OFFERED_ROUNDS = 5;
const OFFERED_SLICE = 0.6;

async function run(generator: Generator, { name, pid }: Contender, slice: Omit<Slice, "name">): Promise<Result> {
  const before = cpuTime(pid) ?? Number.NaN;
  const load = await generator.run({ name, ...slice });
  const cpu = (cpuTime(pid) ?? Number.NaN) - before;
  return { ...load, cpu: (cpu * 1e6) / (load.rate * load.seconds) };
}

/** Fetches the credentials of a round, if a round uses them up. */
export async function refill(generator: Generator, { plan, refill }: Contender): Promise<void> {
  if (refill !== undefined) await generator.load({ ...plan, credentials: await refill() });
}

/** Runs the turn of a contender in a round. Its credentials must have been fetched. */
export function takeTurn(generator: Generator, contender: Contender, seconds = SLICE): Promise<Result> {
  return run(generator, contender, { seconds });
}

/** Warms up a contender. @returns how many responses per second it then reaches */
export async function warmUp(generator: Generator, contender: Contender): Promise<number> {
  const until = performance.now() + WARM.seconds * 1000;
  await generator.load(contender.plan);
  let last = 0;
  for (let responses = 0; responses < WARM.responses && performance.now() < until; ) {
    await refill(generator, contender);
    const { rate, seconds } = await takeTurn(generator, contender);
    responses += rate * seconds;
    last = rate;
  }
  return last;
}

/** Warms up both contenders, and then offers both of them half of the rate of the slower one. */
export async function offerTheSame(
  generator: Generator,
  one: Contender,
  other: Contender,
): Promise<[Measured, Measured]> {
  const rates = [await warmUp(generator, one), await warmUp(generator, other)];
  const rate = Math.floor(Math.min(...rates) / 2);
  const [results, others]: [Result[], Result[]] = [[], []];
  for (let round = 0; round < OFFERED_ROUNDS; round++) {
    results.push(await run(generator, one, { seconds: OFFERED_SLICE, rate }));
    others.push(await run(generator, other, { seconds: OFFERED_SLICE, rate }));
  }
  const measured = ({ title, expected }: Contender, results: Result[]) => ({
    title: `${title}, at ${rate}/s`,
    expected,
    results,
  });
  return [measured(one, results), measured(other, others)];
}
