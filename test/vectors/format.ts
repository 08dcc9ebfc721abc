/** The format of verifier.json, and the data that all its cases share. docs/reference/verifier-protocol.md explains the format. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { ProofRefusal, Refusal } from "../../src/verifier/index.ts";
import { MAIN, type Sign, type VectorKey } from "./keys.ts";

/**
 * The version of the file. It increases when programs that read the file have to change, because of a new member that changes verdicts,
 * or a member with a new meaning.
 */
export const VERSION = 2;

/** Options of the verifier, as in `VerifierOptions`. */
export type VectorOptions = {
  readonly issuer: string;
  readonly audience: string | readonly string[];
  readonly requireDeviceBound?: boolean;
  readonly maxStalenessMs?: number;
};

/** A batch of the feed (WatchRevocationsResponse in JSON), and the time of its arrival by both local clocks. */
export type FeedEvent = { readonly atMs: number; readonly batch: JsonObject };

/** A request that presents the token with the scheme DPoP. */
export type ProvenRequest = { readonly method: string; readonly url: string; readonly proof: string };

export type VectorCase = {
  readonly name: string;
  readonly token: string;
  /** The time of the verification, by both local clocks. */
  readonly nowMs: number;
  /** Options of this case, which replace those of the whole file. */
  readonly options?: Partial<VectorOptions>;
  /** The body of the key set if it differs from that of the file; null if it cannot be read. */
  readonly keys?: unknown;
  /** The time at which the verifier reads the key set. The default is the time of the first batch, or `nowMs` if there is no batch. */
  readonly keysReadAtMs?: number;
  /** The batches of one stream before the verification. If absent, the verifier follows no feed. */
  readonly feed?: readonly FeedEvent[];
  /** The requests that present the token with proofs, one after the other. The verdict of the case is that of the last request. */
  readonly requests?: readonly ProvenRequest[];
  readonly verdict: "accepted" | Refusal | ProofRefusal;
  /** The claims of an accepted token, if JSON can express them. */
  readonly claims?: Readonly<Record<string, unknown>>;
};

export type VectorFile = {
  readonly version: number;
  readonly options: VectorOptions;
  readonly keys: { readonly keys: readonly object[] };
  readonly cases: readonly VectorCase[];
};

export const ISSUER = "https://auth.example";
export const AUDIENCE = "https://api.example";
export const NOW = 1_800_000_000;
export const NOW_MS = NOW * 1000;
export const SID = "AAECAwQFBgcICQoLDA0ODxA";

export const HEAD = { typ: "at+jwt", alg: "ES256", kid: MAIN.kid };
export const CLAIMS = {
  iss: ISSUER,
  sub: "user-1",
  aud: AUDIENCE,
  exp: NOW + 600,
  iat: NOW,
  jti: "j1",
  sid: SID,
  sct: NOW_MS - 60_000,
  client_id: "app",
};

export const raw = (text: string | Uint8Array) => Buffer.from(text as string).toString("base64url");
/** Returns the tokens and proofs of all cases, so that their signatures can be used again when the file is generated anew. */
export const signedTexts = (cases: readonly VectorCase[]) =>
  cases.flatMap(({ token, requests = [] }) => [token, ...requests.map(({ proof }) => proof)]);
export const json = (value: unknown) => raw(JSON.stringify(value));
/** Returns an encoded JSON object that has the given members before the usual claims. */
export const claimsAfter = (members: string) => raw(`{${members},${JSON.stringify(CLAIMS).slice(1)}`);

/** Functions that make tokens. */
export function createForge(sign: Sign) {
  const signed = (header: string, payload: string, key: VectorKey = MAIN) =>
    `${header}.${payload}.${sign(`${header}.${payload}`, key)}`;
  return {
    /** Signs any header and payload segments. */
    signed,
    /** Makes a token with other header members and claims; `undefined` removes one. */
    token: (header: object = {}, claims: object = {}, key: VectorKey = MAIN) =>
      signed(json({ ...HEAD, ...header }), json({ ...CLAIMS, ...claims }), key),
    /** Signs claims that are given as a JSON text. */
    withPayload: (payload: string | Uint8Array) => signed(json(HEAD), raw(payload)),
  };
}

export type Forge = ReturnType<typeof createForge>;

/** A case whose verdict follows from the token alone. */
export type Row = readonly [name: string, token: string, verdict: VectorCase["verdict"]];

export const casesOf = (rows: readonly Row[]): VectorCase[] =>
  rows.map(([name, token, verdict]) => ({ name, token, nowMs: NOW_MS, verdict }));
