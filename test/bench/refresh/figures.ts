/** Compares the measurements with the project's goals. */
import { type Measured, ratio } from "./ratios.ts";
import type { Figure } from "./report.ts";

type Findings = {
  readonly measured: ReadonlyMap<string, Measured>;
  /** The service and the minimal server (floor.ts), both under the same rate of requests. */
  readonly offered: readonly [of: Measured, to: Measured] | undefined;
  /**
   * The load on the store. `roundTrips` is the number of commands during the turns of the contender "json". `forgedReads` is the number of
   * records that the service read during the turns of the contender "forged".
   */
  readonly storeCalls: { readonly roundTrips: number; readonly forgedReads: number };
};

type Goal = Figure["goal"];

/** Which contender is compared with which. More responses per second are better. More CPU time per response is worse. */
const COMPARISONS: readonly (readonly [title: string, of: string, to: string, goal: Goal])[] = [
  ["refresh, of the floor (at least 0.85)", "json", "floor", { atLeast: 0.9 }],
  ["a refresh's time on the core, of the floor's", "json", "floor", { atMost: 1.11 }],
  ["refresh, of the floor, repeating", "json-repeat", "floor-repeat", { atLeast: 0.9 }],
  ["refresh, of Fastify by hand (at least 1.4)", "json", "fastify", { atLeast: 1.5 }],
  ["time on the core over Connect RPC, of a refresh's by the JSON route", "rpc", "json", { atMost: 1.25 }],
  ["the same over gRPC", "grpc", "json", { atMost: 2 }],
  ["the same over gRPC-Web", "grpc-web", "json", { atMost: 2 }],
  ["refresh, of the other checkout", "json", "baseline", { atLeast: 1 }],
  ["a refresh's time on the core, of the other checkout's", "json", "baseline", { atMost: 1.03 }],
  ["refresh with OpenTelemetry, of refresh", "traced", "json", { atLeast: 0.95 }],
  ["its time on the core, of a refresh's", "traced", "json", { atMost: 1.05 }],
  ["logout, of its floor", "logout", "floor-logout", { atLeast: 0.85 }],
  ["forged tokens, of refresh", "forged", "json", { atLeast: 3 }],
  ["a forged token's time on the core, of a refresh's", "forged", "json", { atMost: 0.333 }],
  ["a bare 401's time on the core, of a refresh's", "bare-401", "json", { atMost: 1 }],
];

export function figuresOf({ measured, offered, storeCalls }: Findings): Figure[] {
  const figures: Figure[] = [];
  const add = (title: string, value: number | { refused: string }, unit: string, goal: Goal) => {
    if (typeof value === "number") figures.push({ title, value, unit, goal });
    else figures.push({ title, value: undefined, unit, goal, note: value.refused });
  };
  const addPerResponse = (title: string, name: string, count: number, atMost: number) => {
    const results = measured.get(name)?.results;
    if (results === undefined) return;
    const responses = results.flatMap((result) => Object.values(result.responses)).reduce((sum, n) => sum + n, 0);
    add(title, count / responses, "", { atMost });
  };

  for (const [title, of, to, goal] of COMPARISONS) {
    const [one, other] = [measured.get(of), measured.get(to)];
    if (one === undefined || other === undefined) continue;
    add(title, ratio(one, other, "atLeast" in goal ? "rate" : "cpu"), " ×", goal);
  }
  if (offered !== undefined) {
    add("p99 of the floor's, both offered the same", ratio(...offered, "p99"), " ×", { atMost: 2 });
  }
  addPerResponse("store round trips per refresh", "json", storeCalls.roundTrips, 1.005);
  // The limit is above zero, because some requests of the previous contender may still be under way.
  addPerResponse("store reads per forged token", "forged", storeCalls.forgedReads, 0.005);
  return figures;
}
