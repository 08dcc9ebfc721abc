/** Lets a page check its user where it reads its data. This is the second protection of the page: the first is the gate. */
import { NO_ADAPTER } from "./report.ts";
import type { User } from "./user.ts";

export type ActiveUser = Extract<User, { readonly state: "active" }>;

const MESSAGES = { ended: "nobody is signed in", unavailable: "the session service cannot be reached" } as const;
const STATUS = { ended: 401, unavailable: 503 } as const;

/** The request has no user: nobody is signed in (`ended`), or the kit cannot determine who is (`unavailable`). */
export class SessionError extends Error {
  override readonly name = "SessionError";
  readonly state: "ended" | "unavailable";
  /** The status for the response: 401 or 503. Express takes this property. */
  readonly status: number;
  /** The same status. Fastify takes this property. */
  readonly statusCode: number;
  /** `session_ended` or `session_unavailable`. If a server component throws, Next.js sends only this text of the error to `error.tsx`. */
  readonly digest: string;

  /** @param message the default names the state */
  constructor(state: "ended" | "unavailable", message: string = MESSAGES[state]) {
    super(message);
    this.state = state;
    this.status = this.statusCode = STATUS[state];
    this.digest = `session_${state}`;
  }
}

/**
 * Returns the user if somebody is signed in.
 * @param refuse what happens otherwise, such as a redirect to the login. Default: the error is thrown
 * @throws SessionError
 * @example
 * ```ts
 * import { requireUser } from "@session-service/server";
 *
 * const { user } = await sessions.authenticate(request);
 * const { claims } = requireUser(user);
 * ```
 */
export function requireUser(user: User, refuse?: (error: SessionError) => never): ActiveUser {
  if (user.state === "active") return user;
  const isMissing = user.state === "unavailable" && user.reason === "adapter_missing";
  const error = new SessionError(user.state, isMissing ? NO_ADAPTER : undefined);
  if (refuse) return refuse(error);
  throw error;
}
