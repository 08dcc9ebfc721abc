/**
 * Simulates many tabs of one origin and their service, in virtual time. The kit's own code runs on a simulated platform. Its clock,
 * network, locks, channels and the life of its tabs are controlled by the test.
 */
import { createSession, type Realm, type Session } from "../../../src/browser/index.ts";

type Listener = (event: { readonly type: string; readonly persisted?: boolean }) => void;
type Event = { readonly at: number; readonly tab: Frame | undefined; readonly run: () => void };

/** The behaviour of the network. `lost`: the service acts, but its response never arrives. */
export type Network = "up" | "offline" | "lost" | "silent" | "html" | "unavailable" | "limited";

export const TOKEN_LIFE_S = 300;
const LATENCY_MS = 20;
/** The least delay of a timer in a hidden tab, as in browsers. */
const THROTTLE_MS = 1_000;

/** The state that the simulated platform keeps for a tab. */
type Frame = {
  readonly id: number;
  frozen: boolean;
  /** Whether the tab is in the back/forward cache: it is frozen, and messages to it are lost. */
  cached: boolean;
  visible: boolean;
  dead: boolean;
  /** The functions that were scheduled for times at which the tab was frozen. They run when the tab is resumed. */
  readonly late: (() => void)[];
  readonly listeners: Set<{ readonly type: string; readonly listener: Listener }>;
  /** The timers, listeners, channels and locks of the tab. */
  readonly holds: Set<unknown>;
};
export type Tab = Frame & { readonly session: Session };

type Held = { readonly tab: Frame; readonly release: () => void };
type Waiter = { readonly tab: Frame; readonly signal: AbortSignal; readonly grant: () => void };

export class World {
  nowMs = 0;
  wallOffsetMs = 1_800_000_000_000;
  /** How long the device has slept so far. The monotonic clock does not count this time. */
  sleptMs = 0;
  network: Network = "up";
  /** How long responses take from now on. */
  latencyMs = LATENCY_MS;
  /** How late timers fire in a tab, in ms, as on a busy machine. */
  lagMs = 0;
  /** The session that the cookie names; undefined when nobody is signed in. */
  signedIn: string | undefined = "s0";
  /** Whether the browser also has the cookie of another user. The service refuses the next logout, and removes that cookie. */
  isAmbiguous = false;
  /** A hint cookie that the application has set for a session of another system. The next successful refresh replaces it. */
  oldHint: string | undefined;
  /** The size and the content type of each request to the API. For a form, the content type contains its boundary. */
  readonly bodies: { readonly size: number; readonly type: string }[] = [];
  /** Returns whether a request is lost before it reaches the service. */
  blocks: (request: Request) => boolean = () => false;
  /** The sessions whose end a tab may report: they were signed out or revoked, or lost their cookie. */
  readonly over = new Set<string | undefined>([undefined]);
  /** The subject that signs in next. */
  subject = "alice";
  /** The subjects of the sessions. */
  readonly #subjects = new Map<string | undefined, string>([["s0", "alice"]]);
  /** The sessions that sign-outs of tabs have ended, and whose they were. */
  readonly signOuts: { readonly tab: number; readonly subject: string | undefined }[] = [];
  /** The cookies that a sibling domain has set, in the form of `document.cookie`. */
  planted: readonly string[] = [];
  /** Whether `document.cookie` throws. */
  sandboxed = false;
  /** Whether messages to a frozen tab are lost instead of late. */
  dropping = false;
  refreshes = 0;
  /** The virtual times of the refreshes. */
  readonly refreshedAtMs: number[] = [];
  /** The times at which refresh requests failed because of the network. */
  readonly failedAtMs: number[] = [];
  /** How many refresh requests were made, whatever their outcome. */
  attempts = 0;
  retryAfter = "30";
  refusedTokens = new Set<string>();
  /** How often what the session says has changed. The application's API refuses tokens from before the last change. */
  version = 0;
  readonly tabs: Tab[] = [];
  readonly #random: () => number;
  /** The events in the order of their times; events at the same time are in the order in which they were scheduled. */
  readonly #events: Event[] = [];
  readonly #locks = new Map<string, { held: Held | undefined; waiting: Waiter[] }>();
  readonly channels = new Set<SimulatedChannel>();
  #sessions = 0;
  #tokens = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  open(options: Parameters<typeof createSession>[0] = {}): Tab {
    const frame: Frame = {
      id: this.tabs.length,
      frozen: false,
      cached: false,
      visible: true,
      dead: false,
      late: [],
      listeners: new Set(),
      holds: new Set(),
    };
    const session = createSession({ baseUrl: "https://app.example", ...options }, this.#realmOf(frame));
    const tab = Object.assign(frame, { session });
    this.tabs.push(tab);
    return tab;
  }

  revoke(): void {
    this.over.add(this.signedIn);
    this.signedIn = undefined;
  }

  signIn(): string {
    this.revoke();
    return this.signInByPage();
  }

  /** Removes the browser's cookies; the session stays live. */
  forgetCookies(): void {
    this.signedIn = undefined;
  }

  /** Signs somebody in by a page load: no tab announces it, and the previous session stays live without its cookie. */
  signInByPage(): string {
    this.signedIn = `s${++this.#sessions}`;
    this.#subjects.set(this.signedIn, this.subject);
    return this.signedIn;
  }

  freeze(tab: Tab, cached = false): void {
    tab.frozen = true;
    tab.cached = cached;
    tab.visible = false;
  }

  resume(tab: Tab): void {
    tab.frozen = false;
    tab.visible = true;
    for (const run of tab.late.splice(0)) this.schedule(0, tab, run);
    if (tab.cached) this.dispatch(tab, "pageshow", true);
    else this.dispatch(tab, "resume");
    tab.cached = false;
    this.dispatch(tab, "visibilitychange");
  }

  dispatch(tab: Tab, type: "visibilitychange" | "resume" | "online" | "pageshow", persisted = false): void {
    const run = (entry: { readonly listener: Listener }) => entry.listener({ type, persisted });
    for (const entry of tab.listeners) {
      if (entry.type === type) this.schedule(0, tab, () => tab.listeners.has(entry) && run(entry));
    }
  }

  kill(tab: Tab): void {
    tab.dead = true;
    for (const lock of this.#locks.values()) {
      lock.waiting = lock.waiting.filter((waiter) => waiter.tab !== tab);
      if (lock.held?.tab === tab) lock.held.release();
    }
    for (const channel of this.channels) if (channel.tab === tab) this.channels.delete(channel);
  }

  sleep(ms: number): void {
    this.sleptMs += ms;
    this.nowMs += ms;
  }

  /** Lets virtual time pass. */
  async run(ms: number): Promise<void> {
    const end = this.nowMs + ms;
    await settle();
    for (;;) {
      const next = this.#events[0];
      if (next === undefined || next.at > end) break;
      this.#events.shift();
      this.nowMs = Math.max(this.nowMs, next.at);
      if (next.tab?.dead) continue;
      if (next.tab?.frozen) next.tab.late.push(next.run);
      else next.run();
      await settle();
    }
    this.nowMs = end;
  }

  /** Returns whether the application's API accepts a token. It refuses the tokens in `refusedTokens`, and those of earlier versions. */
  accepts(authorization: string | null): boolean {
    const token = authorization?.slice("Bearer ".length) ?? "";
    return !this.refusedTokens.has(token) && (claimsOf(authorization).sv ?? 0) >= this.version;
  }

  /** Schedules a function of a tab, or of the world if `tab` is undefined. */
  schedule(delayMs: number, tab: Frame | undefined, run: () => void): Event {
    const lagMs = tab ? this.lagMs : 0;
    const event = { at: this.nowMs + delayMs + lagMs, tab, run };
    const before = this.#events.findLastIndex(({ at }) => at <= event.at);
    this.#events.splice(before + 1, 0, event);
    return event;
  }

  #realmOf(tab: Frame): Realm {
    const world = this;
    const listen = (type: string, listener: Listener, { signal }: { signal: AbortSignal }) => {
      const entry = { type, listener };
      tab.listeners.add(entry);
      signal.addEventListener("abort", () => tab.listeners.delete(entry));
    };
    return {
      location: { origin: "https://app.example" },
      performance: { now: () => this.nowMs - this.sleptMs },
      Date: { now: () => this.nowMs + this.wallOffsetMs },
      Math: { random: this.#random },
      document: {
        get visibilityState() {
          return tab.visible ? "visible" : "hidden";
        },
        get cookie() {
          if (world.sandboxed) throw new DOMException("sandboxed", "SecurityError");
          const hint = world.oldHint ?? world.signedIn;
          const own = hint ? ["a=b", `session_hint=${hint}`] : ["a=b"];
          return [...world.planted, ...own].join("; ");
        },
      },
      addEventListener: listen,
      setTimeout: (callback, delayMs) => {
        const timer: Event = this.schedule(Math.max(delayMs, tab.visible ? 0 : THROTTLE_MS), tab, () => {
          if (tab.holds.delete(timer)) callback();
        });
        tab.holds.add(timer);
        return timer;
      },
      clearTimeout: (timer) => {
        tab.holds.delete(timer);
        const index = this.#events.indexOf(timer);
        if (index >= 0) this.#events.splice(index, 1);
      },
      BroadcastChannel: class extends SimulatedChannel {
        constructor(name: string) {
          super(name, tab, world);
        }
      },
      navigator: {
        locks: { request: (name, { signal }, callback) => this.#withLock(name, tab, signal, callback) },
      },
      fetch: (input, init) => this.#fetch(tab, input, init),
    };
  }

  #withLock<T>(name: string, tab: Frame, signal: AbortSignal, callback: () => Promise<T>): Promise<T> {
    const lock = this.#locks.get(name) ?? { held: undefined, waiting: [] };
    this.#locks.set(name, lock);
    return new Promise((resolve, reject) => {
      const grant = () => {
        signal.removeEventListener("abort", abort);
        const release = () => {
          if (lock.held !== held) return;
          lock.held = undefined;
          tab.holds.delete(held);
          lock.waiting.shift()?.grant();
        };
        const held = { tab, release };
        lock.held = held;
        tab.holds.add(held);
        const run = () =>
          callback()
            .then(resolve, reject)
            .finally(() => !tab.dead && release());
        if (this.lagMs > 0) this.schedule(0, tab, run);
        else run();
      };
      const waiter: Waiter = { tab, signal, grant };
      const abort = () => {
        lock.waiting = lock.waiting.filter((other) => other !== waiter);
        reject(new DOMException("aborted", "AbortError"));
      };
      if (signal.aborted) return abort();
      signal.addEventListener("abort", abort);
      if (lock.held) lock.waiting.push(waiter);
      else grant();
    });
  }

  #fetch(tab: Frame, input: string | Request, init: RequestInit | undefined): Promise<Response> {
    const request = new Request(input, { ...init, signal: null });
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    if (request.url.endsWith("/refresh")) {
      this.attempts++;
      if (this.network !== "up") this.failedAtMs.push(this.nowMs);
    }
    return new Promise((resolve, reject) => {
      const abort = () => reject(new DOMException("aborted", "AbortError"));
      if (signal?.aborted) return abort();
      signal?.addEventListener("abort", abort);
      if (this.network === "offline" || this.blocks(request)) {
        this.schedule(1, tab, () => reject(new TypeError("failed to fetch")));
        return;
      }
      // The service executes the request even if the tab that sent it is frozen or closed by now.
      this.schedule(LATENCY_MS, undefined, () => {
        const response = this.#serve(request, tab);
        if (response) this.schedule(this.latencyMs, tab, () => resolve(response));
      });
    });
  }

  #serve(request: Request, tab: Frame): Response | undefined {
    const { network } = this;
    const { pathname, searchParams } = new URL(request.url);
    if (network === "silent" || network === "offline") return undefined;
    if (network === "html") return new Response("<html>portal</html>", { headers: { "content-type": "text/html" } });
    if (network === "unavailable") return Response.json({ error: { code: "E503_UNAVAILABLE" } }, { status: 503 });
    if (network === "limited") {
      return Response.json(
        { error: { code: "E429_RATE_LIMITED" } },
        { status: 429, headers: { "retry-after": this.retryAfter } },
      );
    }
    let response: Response;
    if (pathname === "/v1/auth/refresh") {
      if (this.signedIn !== undefined) this.oldHint = undefined;
      this.refreshes++;
      this.refreshedAtMs.push(this.nowMs);
      response = this.signedIn === undefined ? refused() : Response.json({ data: { accessToken: this.#mint() } });
    } else if (pathname === "/v1/auth/logout" && this.isAmbiguous) {
      this.isAmbiguous = false;
      response = refused();
    } else if (pathname === "/v1/auth/logout") {
      const meant = searchParams.get("session_id") || this.signedIn;
      const byCookie = meant === this.signedIn ? meant : undefined;
      const sid = request.method === "POST" ? byCookie : claimsOf(request.headers.get("authorization")).sid;
      response = this.over.has(sid) ? refused() : Response.json({ data: {} });
      if (response.ok) this.signOuts.push({ tab: tab.id, subject: this.#subjects.get(sid) });
      this.over.add(sid);
      if (this.signedIn === sid) this.signedIn = undefined;
    } else {
      if (request.body) this.#noteBody(request);
      response = this.accepts(request.headers.get("authorization")) ? Response.json({}) : refused();
    }
    return network === "lost" ? undefined : response;
  }

  #noteBody(request: Request): void {
    const body = { size: 0, type: request.headers.get("content-type") ?? "" };
    this.bodies.push(body);
    void request.arrayBuffer().then(({ byteLength }) => Object.assign(body, { size: byteLength }));
  }

  #mint(): string {
    const iat = 1_000 + Math.floor(this.nowMs / 1000);
    const claims = {
      ...{ sub: this.subject, sid: this.signedIn, jti: `t${++this.#tokens}`, iat, exp: iat + TOKEN_LIFE_S },
      ...(this.version > 0 && { sv: this.version }),
    };
    return `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.c2ln`;
  }
}

class SimulatedChannel {
  onmessage: ((event: { readonly data: unknown }) => void) | null = null;
  readonly name: string;
  readonly tab: Frame;
  readonly #world: World;

  constructor(name: string, tab: Frame, world: World) {
    this.name = name;
    this.tab = tab;
    this.#world = world;
    world.channels.add(this);
    tab.holds.add(this);
  }

  postMessage(message: unknown): void {
    const data = structuredClone(message);
    for (const other of this.#world.channels) {
      if (other === this || other.name !== this.name) continue;
      if (other.tab.cached || (this.#world.dropping && other.tab.frozen)) continue;
      this.#world.schedule(1, other.tab, () => this.#world.channels.has(other) && other.onmessage?.({ data }));
    }
  }

  close(): void {
    this.#world.channels.delete(this);
    this.tab.holds.delete(this);
  }
}

const claimsOf = (authorization: string | null): { readonly sid: string; readonly sv?: number } =>
  JSON.parse(Buffer.from(authorization?.split(".")[1] ?? "", "base64url").toString());

const refused = () => Response.json({ error: { code: "E001_AUTH_FAILURE" } }, { status: 401 });

/** Runs everything that can run before time passes. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Records the outcome of a promise without waiting for it. */
export function outcomeOf<T>(promise: Promise<T>) {
  const outcome: { value?: T; error?: unknown; done: boolean } = { done: false };
  promise.then(
    (value) => Object.assign(outcome, { value, done: true }),
    (error: unknown) => Object.assign(outcome, { error, done: true }),
  );
  return outcome;
}
