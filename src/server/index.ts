/** The module that a server which renders pages imports, in every runtime that has `fetch`. docs/tasks/server-side.md explains it. */
export { addResponseHeaders, createGate, type GateOptions, type Passage } from "./gate.ts";
export { type Initial, initialOf } from "./initial.ts";
export { loginLocation, returnPath } from "./login.ts";
export { perProcess } from "./per-process.ts";
export type { Refusal } from "./refusals.ts";
export type { Report, ServerSessionsEvent } from "./report.ts";
export { type ActiveUser, requireUser, SessionError } from "./require-user.ts";
export { isSafe, isSameOrigin } from "./same-origin.ts";
export {
  type Authentication,
  createServerSessions,
  type PageRequest,
  type ServerSessions,
  type ServerSessionsOptions,
  type SessionsSource,
} from "./sessions.ts";
export type { Claims, TokenVerifier, User } from "./user.ts";
