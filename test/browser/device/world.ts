/**
 * Simulates a browser without support for device bound sessions, a service and the network between them, in virtual time. The proofs,
 * challenges and device cookies are the real ones.
 */
import { type DeviceRealm, withDeviceKey } from "../../../src/browser/device/index.ts";
import type { Realm } from "../../../src/browser/realm.ts";
import type { DeviceKey } from "../../../src/service/session/devices/key.ts";
import type { SessionId } from "../../../src/service/session/model.ts";
import { storeMs } from "../../../src/service/session/time.ts";
import { verifyDeviceProof } from "../../../src/service/tokens/device-proof.ts";
import { createRandom, systemEntropy } from "../../../src/service/tokens/random.ts";
import { createDeviceChallenges, createDeviceCookies } from "../../../src/service/tokens/sealed.ts";
import { someKeys } from "../../support/tokens.ts";
import { createMemoryStorage, type MemoryStorage } from "./memory-storage.ts";

/** `lost`: the service acts, and its response never arrives. */
export type Network = "up" | "cut" | "lost" | "outage" | "limited" | "portal";

export const TTL_MS = 300_000;
/**
 * How long after a binding the service still accepts a refresh without a device cookie, because it may have been sent before the binding.
 */
const IN_FLIGHT_MS = 20_000;
const BASE = "https://app.example";

type ServiceSession = { readonly sid: SessionId; key?: DeviceKey; boundAtMs: number };
type Reply = { readonly status: number; readonly headers?: Record<string, string>; readonly body?: unknown };

export class DeviceWorld {
  nowMs = 1_800_000_000_000;
  network: Network = "up";
  /** Whether refreshes succeed despite the network fault. */
  sparesRefreshes = false;
  /** Whether device binding is on at the service. */
  on = true;
  /** The names of the requests that reached the service. */
  readonly requests: string[] = [];
  /** How the requests were sent, in the same order. */
  readonly sent: RequestInit[] = [];
  /** The number of refused refreshes of a live session. */
  wrongRefusals = 0;
  session: ServiceSession;
  deviceCookie: string | undefined;
  storage: MemoryStorage = createMemoryStorage();
  readonly #random = createRandom();
  readonly #keys = someKeys();
  readonly #challenges = createDeviceChallenges({
    keys: this.#keys,
    maxAgeMs: 2 * TTL_MS,
    entropy: systemEntropy(),
  });
  readonly #cookies = createDeviceCookies(this.#keys);
  #timers: { readonly atMs: number; readonly run: () => void }[] = [];
  #pending = 0;
  #switchAfter = Number.POSITIVE_INFINITY;

  constructor() {
    this.session = this.#newSession();
  }

  /** Opens a tab. Returns it as a `Realm`, the interface through which the kit uses a browser. */
  openTab(): Realm {
    const { subtle } = crypto;
    const counted =
      <A extends unknown[], T>(work: (...given: A) => Promise<T>) =>
      (...given: A): Promise<T> =>
        this.counted(work(...given));
    const realm = {
      fetch: counted((url: string, init?: RequestInit) => this.#send(url, init)),
      setTimeout: (run: () => void, delayMs: number) => this.#timers.push({ atMs: this.nowMs + delayMs, run }),
      clearTimeout: () => {},
      performance: { now: () => this.nowMs },
      Date: { now: () => this.nowMs },
      Math,
      indexedDB: this.storage.indexedDB,
      crypto: {
        subtle: {
          generateKey: counted(subtle.generateKey.bind(subtle) as never),
          exportKey: counted(subtle.exportKey.bind(subtle) as never),
          sign: counted(subtle.sign.bind(subtle)),
        },
      },
    };
    return withDeviceKey(realm as unknown as DeviceRealm);
  }

  /** Refreshes as the kit does. Resolves with the status, or with 0 if the network failed. */
  async refresh(tab: Realm): Promise<number> {
    const { sid } = this.session;
    const response = await tab.fetch(`${BASE}/v1/auth/refresh`, { method: "POST" }).catch(() => undefined);
    await this.quiet();
    if (response?.status === 401 && this.session.sid === sid) this.wrongRefusals++;
    return response?.status ?? 0;
  }

  /** Sets how many more requests fail before the network is up again. */
  switchAfter(count: number): void {
    this.#switchAfter = count;
  }

  signIn(): void {
    this.session = this.#newSession();
  }

  async pass(ms: number): Promise<void> {
    this.nowMs += ms;
    const due = this.#timers.filter(({ atMs }) => atMs <= this.nowMs);
    this.#timers = this.#timers.filter((timer) => !due.includes(timer));
    for (const { run } of due) run();
    await this.quiet();
  }

  /** Resolves when no request and no storage operation is outstanding any more. */
  async quiet(): Promise<void> {
    for (let still = 0; still < 5; still++) {
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#pending > 0 || this.storage.pending > 0) still = 0;
    }
  }

  async counted<T>(work: Promise<T>): Promise<T> {
    this.#pending++;
    try {
      return await work;
    } finally {
      this.#pending--;
    }
  }

  #newSession(): ServiceSession {
    return { sid: this.#random.sessionId("alice"), boundAtMs: Number.POSITIVE_INFINITY };
  }

  async #send(url: string, init?: RequestInit): Promise<Response> {
    if (this.#switchAfter-- <= 0) {
      this.network = "up";
      this.#switchAfter = Number.POSITIVE_INFINITY;
    }
    const path = url.slice(BASE.length);
    const network = this.sparesRefreshes && path === "/v1/auth/refresh" ? "up" : this.network;
    await Promise.resolve();
    if (network === "cut") throw new TypeError("cut");
    if (network === "portal") return new Response("<!doctype html>", { headers: { "content-type": "text/html" } });
    if (network === "outage") return responseOf({ status: 503, body: { error: { code: "E503_UNAVAILABLE" } } });
    if (network === "limited") return responseOf({ status: 429, body: { error: { code: "E429_RATE_LIMITED" } } });
    this.requests.push(path);
    this.sent.push(init ?? {});
    const reply = this.#serve(path, new Headers(init?.headers).get("secure-session-response"));
    if (network === "lost") throw new TypeError("lost");
    return responseOf(reply);
  }

  #serve(path: string, proof: string | null): Reply {
    if (path === "/v1/auth/refresh") return this.#refresh();
    if (!this.on) return { status: 404, body: { error: { code: "E404_NOT_FOUND" } } };
    return path === "/v1/auth/device" ? this.#register(proof) : this.#renew(proof);
  }

  #refresh(): Reply {
    const { sid, key, boundAtMs } = this.session;
    const read = this.#cookies.read(this.deviceCookie ?? "");
    const fresh = read.ok && read.sid === sid && this.nowMs - read.issuedAtMs <= TTL_MS;
    if (this.on && key && !fresh && this.nowMs > boundAtMs + IN_FLIGHT_MS) {
      return { status: 401, body: { error: { code: "E001_AUTH_FAILURE" } } };
    }
    const segment = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const accessToken = `${segment({})}.${segment({ sid, iat: 1, exp: 2 })}.x`;
    const offer = `(ES256 RS256);path="/v1/auth/device";challenge="${this.#challenges.issue(sid, storeMs(this.nowMs))}"`;
    const headers: Record<string, string> = this.on && !key ? { "secure-session-registration": offer } : {};
    return { status: 200, headers, body: { data: { accessToken } } };
  }

  #register(proof: string | null): Reply {
    const { session } = this;
    const verified = verifyDeviceProof(proof ?? "", { kind: "registration" });
    if (!verified.ok || !this.#accepts(verified.challenge)) return this.#challenge();
    if (session.key && !Buffer.from(session.key.bytes).equals(verified.key.bytes)) return this.#challenge();
    session.key = verified.key;
    session.boundAtMs = Math.min(session.boundAtMs, this.nowMs);
    return this.#renewed(verified.key);
  }

  #renew(proof: string | null): Reply {
    const { key } = this.session;
    if (!key) return { status: 200, body: { continue: false } };
    const verified = verifyDeviceProof(proof ?? "", { kind: "renewal", key });
    return verified.ok && this.#accepts(verified.challenge) ? this.#renewed(key) : this.#challenge();
  }

  #accepts(challenge: string): boolean {
    return this.#challenges.check(challenge, this.session.sid, storeMs(this.nowMs)).ok;
  }

  #challenge(): Reply {
    return { status: 403, headers: this.#nextChallenge(), body: { error: { code: "E403_FORBIDDEN" } } };
  }

  #renewed(key: DeviceKey): Reply {
    const { sid } = this.session;
    this.deviceCookie = this.#cookies.issue(sid, key.thumbprint, storeMs(this.nowMs));
    return { status: 200, headers: this.#nextChallenge(), body: { session_identifier: sid } };
  }

  #nextChallenge(): Record<string, string> {
    const { sid } = this.session;
    return { "secure-session-challenge": `"${this.#challenges.issue(sid, storeMs(this.nowMs))}";id="${sid}"` };
  }
}

function responseOf({ status, headers = {}, body }: Reply): Response {
  return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } });
}
