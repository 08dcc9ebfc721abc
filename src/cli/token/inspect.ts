/** Shows the contents of a token. Nothing is verified. */
import { decodeRefreshToken } from "../../tokens/refresh-token.ts";
import type { Context } from "../context.ts";
import { CommandError } from "../exit.ts";
import { fields } from "../output/table.ts";
import { moment } from "../output/times.ts";
import { readToken } from "./read.ts";

type Options = { readonly file?: string; readonly json?: boolean };
type Claims = Readonly<Record<string, unknown>>;

export function inspectToken({ env, print, note }: Context, { file, json }: Options): void {
  const token = readToken(env, file);
  const described = accessToken(token) ?? refreshToken(token);
  if (described === undefined) throw new CommandError("this is neither a JWT nor a refresh token of this service");
  if (json) {
    print(JSON.stringify(described));
    return;
  }
  const { kind, ...parts } = described;
  const entries = Object.values(parts).flatMap((part) => Object.entries(part));
  print(fields([["token", kind], ...entries.map(([name, value]): [string, string] => [name, shown(name, value)])]));
  note("not verified: `session-service token verify` does that");
}

/** Decodes the header and the claims of a JWT. */
function accessToken(token: string) {
  const [header, claims, signature, ...more] = token.split(".");
  if (signature === undefined || more.length > 0) return undefined;
  const [head, body] = [jsonOf(header), jsonOf(claims)];
  return head && body && { kind: "access token (JWT)", header: head, claims: body };
}

function jsonOf(part = ""): Claims | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, "base64url").toString());
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Claims) : undefined;
  } catch {
    return undefined;
  }
}

function refreshToken(token: string) {
  const decoded = decodeRefreshToken(token);
  if (decoded === undefined) return undefined;
  const { kid, sid, generation, issuedAt } = decoded;
  return { kind: "refresh token", claims: { kid, sid, generation, iat: Math.floor(issuedAt / 1000) } };
}

/** Claims that are times, in seconds. */
const TIMES = new Set(["exp", "iat", "nbf", "auth_time"]);

function shown(name: string, value: unknown): string {
  if (TIMES.has(name) && typeof value === "number" && Math.abs(value) < 1e11) return moment(value * 1000, Date.now());
  return typeof value === "string" ? value : JSON.stringify(value);
}
