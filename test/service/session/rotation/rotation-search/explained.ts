/**
 * A search over what the service sees, for the question whether any rule could notice a theft earlier.
 *
 * The service sees which of its tokens are presented, and when. A history is *explained* if one honest browser may have caused it: one cookie
 * jar, requests with the token that the jar had when they left, and responses that arrive or are lost, all within half of the reuse
 * interval (R/2). A rule that ends no honest session has to serve every explained history, whoever caused it; a history without an
 * explanation is a theft that a rule could know of. The search plays every history of presentations at the given distances, and keeps all
 * browsers that explain it (browser.ts has the other point of view: all histories of a browser). At most three requests are in flight, and
 * none runs twice, so there may be more explanations than it finds.
 */
import {
  type decide,
  firstState,
  type RotationState,
  type TokenFields,
} from "../../../../../src/service/session/rotation/rotation.ts";
import { storeMs } from "../../../../../src/service/session/time.ts";
import { childOf } from "./holders.ts";

/** The reuse interval, R, in ticks: distances are multiples of R/4. */
export const R = 4;
const FLIGHT = R / 2;
const IN_FLIGHT = 3;

/** A request that has left with this token and has not run yet, or a response with this token that may still arrive. */
type Flight = { readonly token: string; readonly sentAt: number };
/** A browser that explains a history. Tokens have their nonces as names. */
type Browser = { readonly jar: string; readonly requests: readonly Flight[]; readonly responses: readonly Flight[] };

type History = {
  readonly state: RotationState;
  readonly minted: readonly TokenFields[];
  readonly browsers: readonly Browser[];
  readonly now: number;
  readonly lines: readonly string[];
};

export type Found = {
  /** How many presentations were decided. */
  readonly decided: number;
  /** Histories that end as `reuse` although an honest browser may have caused them. */
  readonly wrong: readonly (readonly string[])[];
  /** Histories that are served to the last although no honest browser can have caused them, the shortest first. */
  readonly missed: readonly (readonly string[])[];
};

type Assumptions = {
  readonly decide: typeof decide;
  /** The possible distances between two presentations, in ticks. */
  readonly distances: readonly number[];
  /** How many presentations a history has at most. */
  readonly length: number;
};

export function explain({ decide, distances, length }: Assumptions): Found {
  const found = { decided: 0, wrong: [] as string[][], missed: [] as string[][] };
  const first = firstState("a");
  let histories: History[] = [
    {
      ...{ state: first, minted: [childOf(first)], now: 0, lines: [] },
      browsers: [{ jar: "a", requests: [], responses: [] }],
    },
  ];
  for (let place = 0; place < length; place++) {
    const nonce = String.fromCharCode(98 + place);
    const longer: History[] = [];
    for (const history of histories) {
      for (const distance of place === 0 ? [0] : distances) {
        const now = history.now + distance;
        const waited = after(history.browsers, history.now, now);
        for (const token of history.minted) {
          const decision = decide(history.state, token, nonce, storeMs(START + now), R);
          found.decided++;
          const lines = [...history.lines, `${distance / R} R later ${token.nonce}: ${decision.outcome}`];
          const next = decision.outcome === "reuse" ? undefined : decision.next;
          const browsers = waited.flatMap((browser) => [
            ...presents(browser, token.nonce, next?.childNonce ?? "", now),
          ]);
          if (next === undefined) {
            if (browsers.length > 0) found.wrong.push(lines);
          } else if (browsers.length === 0) found.missed.push(lines);
          else {
            const minted = next.childNonce === nonce ? [...history.minted, childOf(next)] : history.minted;
            longer.push({ state: next, minted, browsers: distinct(browsers), now, lines });
          }
        }
      }
    }
    histories = longer;
  }
  return found;
}

/** When a history begins. The session was created long before. */
const START = 1_000;

/** Yields the browser after the presentation of a token, in each way in which it can have caused it. */
function* presents(browser: Browser, token: string, response: string, now: number): Iterable<Browser> {
  const { jar, requests, responses } = browser;
  if (jar === token) {
    const sent = { token: response, sentAt: now };
    const isFull = requests.length + responses.length >= IN_FLIGHT;
    // A response that is lost makes room.
    const kept = isFull ? responses.map((_, at) => responses.toSpliced(at, 1)) : [responses];
    for (const others of kept) yield { jar, requests, responses: [...others, sent] };
  }
  for (const [at, request] of requests.entries()) {
    if (request.token !== token) continue;
    const returned = { token: response, sentAt: request.sentAt };
    yield { jar, requests: requests.toSpliced(at, 1), responses: [...responses, returned] };
  }
}

/** Returns the browsers that there may be some time later, if nothing runs meanwhile. */
function after(browsers: readonly Browser[], from: number, to: number): readonly Browser[] {
  let here = arrivals(browsers, from);
  for (let now = from + 1; now <= to; now++) {
    const isAlive = ({ sentAt }: Flight) => now - sentAt <= FLIGHT;
    const alive = here.map(({ jar, requests, responses }) => ({
      ...{ jar, requests: requests.filter(isAlive), responses: responses.filter(isAlive) },
    }));
    here = arrivals(alive, now);
  }
  return here;
}

/** Returns the browsers after any responses have arrived, in any order, each just after requests with the token before have left. */
function arrivals(browsers: readonly Browser[], now: number): readonly Browser[] {
  const all = [...browsers];
  const seen = new Set(all.map(nameOf));
  // The list grows while it is read.
  for (const { jar, requests, responses } of all) {
    for (const [at, { token }] of responses.entries()) {
      const others = responses.toSpliced(at, 1);
      const room = token === jar ? 0 : IN_FLIGHT - requests.length - others.length;
      for (let left = 0; left <= room; left++) {
        const leaving = Array.from({ length: left }, () => ({ token: jar, sentAt: now }));
        const browser = { jar: token, requests: [...requests, ...leaving], responses: others };
        if (seen.has(nameOf(browser))) continue;
        seen.add(nameOf(browser));
        all.push(browser);
      }
    }
  }
  return all;
}

function nameOf({ jar, requests, responses }: Browser): string {
  const names = (flights: readonly Flight[]) => flights.map(({ token, sentAt }) => `${token}${sentAt}`).sort();
  return JSON.stringify([jar, names(requests), names(responses)]);
}

const distinct = (browsers: readonly Browser[]): readonly Browser[] => [
  ...new Map(browsers.map((browser) => [nameOf(browser), browser])).values(),
];
