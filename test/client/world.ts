/** Simulates many processes with one file of tokens in virtual time: requests are slow or lost, processes are killed, clocks are set. */
import { createTokenSession, SessionEnded, SessionUnavailable, type StoredTokens } from "../../src/client/index.ts";
import { decide, firstState, type TokenFields } from "../../src/service/session/rotation/rotation.ts";
import { storeMs } from "../../src/service/session/time.ts";

export const R = 10_000;
const TOKEN_LIFE = 60_000;
const HOUR = 3_600_000;
const SERVICE = "https://auth.example.test";

export type Settings = {
  readonly seed: number;
  readonly processes: number;
  readonly tokenLives: number;
  /** How long a request takes at most, in ms, including reading the file before it and writing the file after it. */
  readonly requestMs: number;
};

export type Outcome = {
  readonly refreshes: number;
  readonly kills: number;
  readonly lost: number;
  /** How often a process was informed that the session is over. Each of these is wrong, because the session never ends. */
  readonly wrongLogouts: number;
};

/** Returns a generator of numbers from 0 to 1 (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Virtual time. When nothing else is under way, it moves to the end of the earliest sleep. */
class Time {
  now = HOUR * 1_000;
  #sleepers: { readonly at: number; readonly wake: () => void }[] = [];

  sleep(ms: number): Promise<void> {
    return new Promise((wake) => {
      const at = this.now + ms;
      const place = this.#sleepers.findIndex((other) => other.at > at);
      this.#sleepers.splice(place < 0 ? this.#sleepers.length : place, 0, { at, wake });
    });
  }

  async runUntil(end: number): Promise<void> {
    for (;;) {
      await new Promise(setImmediate);
      const next = this.#sleepers.shift();
      if (next === undefined || next.at > end) return;
      this.now = next.at;
      next.wake();
    }
  }
}

const NEVER = new Promise<never>(() => {});

/** Simulates the processes in virtual time. Returns the counts. */
export async function play(settings: Settings): Promise<Outcome> {
  const { seed, processes, tokenLives, requestMs } = settings;
  const random = randomFrom(seed);
  const time = new Time();
  const end = time.now + tokenLives * TOKEN_LIFE;
  const outcome = { refreshes: 0, kills: 0, lost: 0, wrongLogouts: 0 };
  let minted = 0;
  let state: ReturnType<typeof firstState> | undefined = firstState("first");
  const first: TokenFields = { generation: 1, nonce: "first", issuedAt: storeMs(time.now) };
  let file: StoredTokens = { refreshToken: JSON.stringify(first) };

  /** Responds to a refresh by the same rotation rules as the stores. */
  function serve(form: URLSearchParams): Response {
    outcome.refreshes++;
    const token = JSON.parse(form.get("refresh_token") ?? "") as TokenFields;
    const decision = state && decide(state, token, `nonce ${++minted}`, storeMs(time.now), R);
    if (decision === undefined || decision.outcome === "reuse") {
      state = undefined;
      return Response.json({ error: "invalid_grant" }, { status: 400 });
    }
    state = decision.next;
    const child = { generation: state.generation + 1, nonce: state.childNonce, issuedAt: state.childMintedAt };
    const tokens = { access_token: `access ${minted}`, refresh_token: JSON.stringify(child), token_type: "Bearer" };
    return Response.json({ ...tokens, expires_in: TOKEN_LIFE / 1000 });
  }

  async function run(): Promise<void> {
    let isAlive = true;
    const alive = async <T>(value: T): Promise<T> => (isAlive ? value : NEVER);
    const skew = random() < 0.2 ? (random() - 0.5) * 2 * HOUR : 0;
    const session = createTokenSession({
      service: SERVICE,
      clientId: "cli",
      requestTimeoutMs: HOUR,
      now: () => time.now + skew,
      store: {
        async load() {
          await time.sleep(random() * 2);
          return alive(file);
        },
        async save(tokens) {
          await time.sleep(random() * 2);
          await alive(undefined);
          file = tokens;
        },
        clear: () => NEVER,
      },
      async fetch(_, init) {
        await time.sleep((random() * requestMs) / 2);
        if (random() < 0.1) return fail();
        const response = serve(init?.body as URLSearchParams);
        await time.sleep((random() * requestMs) / 2 - 10);
        return random() < 0.1 ? fail() : alive(response);
      },
    });
    const fail = (): never => {
      outcome.lost++;
      throw new TypeError("lost");
    };
    void (async () => {
      while (isAlive) {
        await time.sleep(random() * TOKEN_LIFE * 1.5);
        await session.accessToken().catch((error: unknown) => {
          if (error instanceof SessionEnded) outcome.wrongLogouts++;
          else if (!(error instanceof SessionUnavailable)) throw error;
        });
      }
    })();
    await time.sleep(random() * 20 * TOKEN_LIFE);
    isAlive = false;
    outcome.kills++;
    void run();
  }

  for (let count = 0; count < processes; count++) void run();
  await time.runUntil(end);
  return outcome;
}
