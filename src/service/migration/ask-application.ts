/** Asks the application whose sessions are migrated what an old session is. One POST, bounded in every way, without a retry. */
import { hash } from "node:crypto";
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { refuseUpgrade } from "../../platform/net/refuse-upgrade.ts";
import type { Application, ApplicationReply, Question } from "../session/migration/application.ts";
import { secondsOf, type WallClock } from "../session/time.ts";

type Options = {
  readonly url: string;
  readonly issuer: string;
  /** Signs claims with the current key of the service. */
  readonly sign: (typ: string, claims: Readonly<Record<string, unknown>>) => string;
  /** Returns a text that no other request has. */
  readonly id: () => string;
  readonly clock: WallClock;
  /** The time limit for everything, in ms. */
  readonly deadlineMs?: number;
};

/** The type of the token that proves who asks. Verifiers of access tokens do not accept it (RFC 8725 section 3.11). */
const TYP = "migration+jwt";
const LIFE_SECONDS = 60;
const DEADLINE_MS = 2_000;
/** How many connections are open at most. The connections are not kept, because a closed one would cost a user an attempt. */
const MAX_SOCKETS = 32;
const MAX_HEADER_BYTES = 8_192;
const MAX_BODY_BYTES = 32_768;

class TooLarge extends Error {}

export function createApplication({ url, issuer, sign, id, clock, deadlineMs = DEADLINE_MS }: Options): Application {
  const isSecure = url.startsWith("https:");
  const open = isSecure ? requestHttps : requestHttp;
  const agent = new (isSecure ? HttpsAgent : HttpAgent)({ keepAlive: false, maxSockets: MAX_SOCKETS });

  function headersOf(cookies: string, body: string) {
    const iat = secondsOf(clock());
    const cookieHash = hash("sha256", cookies, "base64url");
    const claims = { iss: issuer, aud: url, iat, exp: iat + LIFE_SECONDS, jti: id(), cookie_hash: cookieHash };
    return {
      authorization: `Bearer ${sign(TYP, claims)}`,
      cookie: cookies,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      accept: "application/json",
      "user-agent": "session-service",
    };
  }

  async function ask({ cookieName, cookies, client }: Question): Promise<ApplicationReply> {
    const { userAgent, ipAddress } = client;
    const body = JSON.stringify({ cookie: cookieName, client: { userAgent, ipAddress } });
    const deadline = AbortSignal.timeout(deadlineMs);
    try {
      const options = { method: "POST", headers: headersOf(cookies, body), agent, maxHeaderSize: MAX_HEADER_BYTES };
      return await new Promise<ApplicationReply>((resolve, reject) => {
        const request = open(url, { ...options, signal: deadline }, (response) => read(response).then(resolve, reject));
        refuseUpgrade(request, reject).on("error", reject).end(body);
      });
    } catch (error) {
      if (deadline.aborted) return failed("timeout");
      return failed(error instanceof TooLarge ? "too_large" : "unreachable");
    }
  }

  return { ask };
}

const failed = (fault: string): ApplicationReply => ({ ok: false, reason: "failed", fault });

/** Reads a response, but the body of a 200 alone. Any other status but 204 may come from a proxy, and says nothing about the session. */
async function read(response: IncomingMessage): Promise<ApplicationReply> {
  const { statusCode } = response;
  if (statusCode !== 200) {
    response.destroy();
    return statusCode === 204 ? { ok: false, reason: "unknown" } : failed(`status_${statusCode}`);
  }
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) throw new TooLarge();
    chunks.push(chunk);
  }
  return { ok: true, body: Buffer.concat(chunks).toString() };
}
