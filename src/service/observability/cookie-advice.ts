/**
 * Reports that browsers refresh without the cookie after a login. Such a refresh is a 401 that is not logged, because a visitor who is not
 * signed in causes the same. What happens beside it shows the difference: sessions are created, and none is refreshed.
 */
import type { Logger } from "./logger.ts";

/** The time in ms in which sessions must have been created, and none refreshed. There is at most one line in this time. */
const WINDOW_MS = 60_000;

type CookieNames = { readonly name: string; readonly path: string; readonly domain: string | undefined };

const CAUSES =
  "a fetch without credentials: include; a login page that does not pass Set-Cookie on; a path or a host that the cookie is not for";

/** Counts what happens to sessions, and reports refreshes without the cookie beside it. @param clock returns milliseconds */
export class CookieAdvice {
  created = 0;
  renewed = 0;
  #before = { created: 0, renewed: 0 };
  #sinceMs = Number.NEGATIVE_INFINITY;
  #advisedMs = Number.NEGATIVE_INFINITY;
  readonly #cookie: CookieNames;
  readonly #log: Pick<Logger, "warn">;
  readonly #clock: () => number;

  constructor(cookie: CookieNames, log: Pick<Logger, "warn">, clock = () => performance.now()) {
    this.#cookie = cookie;
    this.#log = log;
    this.#clock = clock;
  }

  /** Notes a refresh without the cookie. */
  noteMissing(): void {
    const { created, renewed } = this;
    const isTypical = created > this.#before.created && renewed === this.#before.renewed;
    const nowMs = this.#clock();
    if (nowMs - this.#sinceMs >= WINDOW_MS) {
      this.#sinceMs = nowMs;
      this.#before = { created, renewed };
    }
    if (!isTypical || nowMs - this.#advisedMs < WINDOW_MS) return;
    this.#advisedMs = nowMs;
    const { name, path, domain } = this.#cookie;
    const text = "refreshes come without the cookie, although sessions are created";
    // The field is not called `cookie`, because the log redacts fields of that name.
    this.#log.warn({ event: "refresh_without_cookie", cookieName: name, path, domain, causes: CAUSES }, text);
  }
}
