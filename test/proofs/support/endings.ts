/** Ends sessions while their signals are delivered. Every end that was acknowledged must reach the receivers. */
import { setTimeout as sleep } from "node:timers/promises";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import type { Service } from "../../support/service.ts";
import { admin, bearer, logIn } from "../../support/sessions.ts";
import { callersOf, pick } from "./deployment.ts";

export class Endings {
  /** The sessions whose end was acknowledged. */
  readonly acknowledged = new Set<string>();
  readonly #services: readonly Service[];
  readonly #adminToken: string;

  constructor(services: readonly Service[], adminToken: string) {
    this.#services = services;
    this.#adminToken = adminToken;
  }

  /** Ends this many sessions, several at the same time. If one fails, another session is ended. */
  async end(count: number, workers = 8): Promise<void> {
    const goal = this.acknowledged.size + count;
    await Promise.all(Array.from({ length: workers }, () => this.#work(() => this.acknowledged.size >= goal)));
  }

  /** Ends about twenty sessions a second until `isOver`. */
  async endUntil(isOver: () => boolean): Promise<void> {
    await Promise.all([1, 2].map(() => this.#work(isOver, 100)));
  }

  async #work(isOver: () => boolean, pauseMs = 0): Promise<void> {
    while (!isOver()) {
      // If the service is unavailable, the session may or may not have ended, so its signal is not expected.
      const sessionId = await this.#endOne().catch(() => undefined);
      if (sessionId !== undefined) this.acknowledged.add(sessionId);
      if (sessionId === undefined || pauseMs > 0) await sleep(Math.max(pauseMs, 20));
    }
  }

  async #endOne(): Promise<string | undefined> {
    const [service, other] = [pick(this.#services), pick(this.#services)];
    const credential = bearer(this.#adminToken);
    const { sid, accessToken } = await logIn({ ...service, adminToken: this.#adminToken });
    const response =
      Math.random() < 0.5
        ? await callersOf(other).public.call(SessionService.method.logout, {}, bearer(accessToken))
        : await callersOf(other).admin.call(admin.revokeSession, { sessionId: sid }, credential);
    return response.ok ? sid : undefined;
  }
}
