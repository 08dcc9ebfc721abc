/** The messages between the tabs of one origin, and how each of them changes what a tab knows. */
import { begin, dueMs, fail, hearEnd, type Known, take } from "./machine.ts";
import type { Realm } from "./realm.ts";
import { agoMs, type HeldToken, holdToken, type ReceivedToken } from "./token.ts";

/** Asks for a newer token. A tab that has one sends it to `replyTo`. */
export type AskMessage = { readonly type: "ask"; readonly newerThan: number; readonly replyTo: string };

type TokenMessage = ReceivedToken & { readonly type: "token" };

export type TabMessage =
  | AskMessage
  | TokenMessage
  /** A session has ended. If `sid` is absent, the sender never held a token of it, and tabs that hold one check their own session. */
  | { readonly type: "ended"; readonly sid: string | undefined }
  /** The sender could not reach the service. */
  | { readonly type: "failed"; readonly waitMs: number; readonly atMs: number }
  /** Somebody has signed in. */
  | { readonly type: "began" };

/** The step of the machine for each type of message, except the request for a token. */
const STEPS: {
  readonly [T in Exclude<TabMessage["type"], "ask">]: (
    known: Known,
    message: Extract<TabMessage, { readonly type: T }>,
    realm: Realm,
    hint: string | undefined,
  ) => Known;
} & { readonly __proto__: null } = {
  // The object has no prototype, because any page of the origin may send a message with any type, such as `constructor`.
  __proto__: null,
  began: begin,
  failed(known, { waitMs, atMs }, realm) {
    const leftMs = waitMs - agoMs(realm, atMs);
    return leftMs > 0 && dueMs(known) <= 0 ? fail(known, leftMs) : known;
  },
  token(known, message, realm, hint) {
    const other = holdToken(message, realm);
    return other && other.leftMs() > 0 ? take(known, other, hint) : known;
  },
  ended: hearEnd,
};

/** Returns what this tab knows after a message of another tab. A message of an unknown type changes nothing. */
export const hear = (known: Known, message: TabMessage | null, realm: Realm, hint: string | undefined): Known =>
  STEPS[message?.type as "token"]?.(known, message as TokenMessage, realm, hint) ?? known;

/** Returns a message with a token. In place of the function `leftMs` it has the start of the token's life, by the wall clock. */
export function messageOf({ leftMs, ...token }: HeldToken, realm: Realm): TokenMessage {
  return { ...token, type: "token", atMs: realm.Date.now() - token.lifeMs + leftMs() };
}
