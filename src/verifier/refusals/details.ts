/** Describes why a token was refused: what this verifier expects, and what the token has. Neither contains the token or its signature. */

import { PROOF_TOLERANCE_MS } from "../../platform/dpop/proof.ts";
import { proofUrl } from "../../platform/dpop/proof-url.ts";
import { readSegment } from "../../platform/jws/compact-jws.ts";
import { ALGORITHMS, type PublishedKey } from "../keys/jwk.ts";
import { MAX_LENGTH, REQUIRED_CLAIMS } from "../token-rules.ts";
import type { Details } from "./report.ts";

/** The greatest length of a text in a description, in code points. A longer one ends with an ellipsis. */
const MAX_TEXT = 200;
/** Control and format characters, such as line breaks and direction marks, could forge lines of a log. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

type Members = Readonly<Record<string, unknown>>;
type Row = readonly [name: string, expected: unknown, received: unknown];
export type Presented = {
  readonly token: string;
  /** The request of a token that is bound to a key. */
  readonly request?: { readonly method: string; readonly url: string; readonly proof: string | null | undefined };
};

export type DetailDeps = {
  readonly issuer: string;
  readonly audiences: ReadonlySet<string>;
  readonly keys: { readonly kids: readonly string[]; find(kid: string): Pick<PublishedKey, "alg"> | undefined };
  readonly clock: () => number;
};

/** Returns the values that decide about a reason; empty for a reason that no value of the token explains. */
export function describeRefusal(
  reason: string,
  { token, request }: Presented,
  deps: DetailDeps,
): { readonly expected: Details; readonly received: Details } {
  const { header, claims } = readToken(token);
  const rows =
    reason === "malformed" ? formOf(header, claims) : (describeToken(reason, header ?? {}, claims ?? {}, deps) ?? []);
  const all = request === undefined ? rows : [...rows, ...describeProof(reason, request, deps.clock())];
  return {
    expected: Object.fromEntries(all.map(([name, expected]) => [name, textOf(expected)])),
    received: Object.fromEntries(all.map(([name, , received]) => [name, textOf(received)])),
  };
}

function describeToken(reason: string, header: Members, claims: Members, deps: DetailDeps): Row[] | undefined {
  const { typ, alg, kid } = header;
  const { iss, aud, exp, nbf, cnf, device_bound } = claims;
  const key: Row = ["kid", [...deps.keys.kids].sort(), kid];
  const issuer: Row = ["iss", deps.issuer, iss];
  const seconds = Math.floor(deps.clock() / 1000);
  switch (reason) {
    case "wrong_type":
      return [["typ", "at+jwt", typ]];
    case "wrong_algorithm":
      return [["alg", (typeof kid === "string" ? deps.keys.find(kid)?.alg : undefined) ?? ALGORITHMS, alg]];
    case "revoked_key":
      return [key];
    case "unknown_key":
    case "forged":
      return [key, issuer];
    case "wrong_issuer":
      return [issuer];
    case "wrong_audience":
      return [["aud", [...deps.audiences].sort(), aud]];
    case "not_bearer":
      return [["cnf", undefined, cnf]];
    case "not_device_bound":
      return [["device_bound", true, device_bound]];
    case "not_yet_valid":
      return [["nbf", `<= ${seconds}`, nbf]];
    case "expired":
      return [["exp", `> ${seconds}`, exp]];
    default:
      return undefined;
  }
}

/** Describes a malformed token by the names of its members: a token of another kind of issuer has other ones. */
function formOf(header: Members | undefined, claims: Members | undefined): Row[] {
  const namesOf = (members: Members | undefined) =>
    members === undefined ? "not readable" : Object.keys(members).sort();
  return [
    ["header", ["alg", "kid", "typ"], namesOf(header)],
    ["claims", REQUIRED_CLAIMS, namesOf(claims)],
  ];
}

function describeProof(
  reason: string,
  { method, url, proof }: NonNullable<Presented["request"]>,
  nowMs: number,
): Row[] {
  const { htm, htu, iat } = readToken(proof ?? "").claims ?? {};
  if (reason === "proof_wrong_method") return [["htm", method, htm]];
  // The query is no part of `htu` (RFC 9449 section 4.2), and may contain a secret.
  const withoutQuery = typeof htu === "string" ? htu.replace(/[?#].*/s, "") : htu;
  if (reason === "proof_wrong_url") return [["htu", proofUrl(url), withoutQuery]];
  const tolerance = PROOF_TOLERANCE_MS / 1000;
  return reason === "proof_stale" ? [["iat", `${Math.floor(nowMs / 1000)} +- ${tolerance}`, iat]] : [];
}

/** Reads a token that was refused. A part is undefined if it cannot be decoded. */
function readToken(token: unknown): { readonly header: Members | undefined; readonly claims: Members | undefined } {
  const text = typeof token === "string" && token.length <= MAX_LENGTH ? token : "";
  const [dot, end] = [text.indexOf("."), text.lastIndexOf(".")];
  return {
    header: readSegment(text.slice(0, Math.max(dot, 0))),
    claims: dot < end ? readSegment(text.slice(dot + 1, end)) : undefined,
  };
}

/** Returns a value as a text that is safe in a log. The verifiers in other languages write it in the same way. */
function textOf(value: unknown): string {
  if (value === undefined) return "absent";
  if (typeof value === "boolean") return String(value);
  if (typeof value === "number" && Number.isSafeInteger(Math.floor(value))) return `${Math.floor(value)}`;
  const text = Array.isArray(value) && value.every((each) => typeof each === "string") ? value.join(", ") : value;
  if (typeof text !== "string") return "of another type";
  const points = [...text.replace(UNSAFE, "")];
  if (points.length === 0) return "empty";
  return points.length > MAX_TEXT ? `${points.slice(0, MAX_TEXT).join("")}…` : points.join("");
}
