/** The module that a front end imports. */

export type { AuthInterceptor } from "./authorized-calls.ts";
export { SessionError, type SessionErrorReason } from "./errors.ts";
export type { Realm } from "./realm.ts";
export { createSession, type Initial, type Session, type SessionOptions } from "./session.ts";
export type { SessionState, Snapshot } from "./snapshot.ts";
export type { Claims } from "./token.ts";
