/** RegisterDevice and RenewDevice: converts between messages and the domain, in the format of Device Bound Session Credentials. */
import type { HandlerContext } from "@connectrpc/connect";
import { type DeviceGranted, type ProofRequired, registerDevice, renewDevice } from "../../session/devices/device.ts";
import type { DeviceHeaders, DeviceTools } from "../../session/devices/presented.ts";
import { ServiceError } from "../../session/errors.ts";
import type { SessionId } from "../../session/model.ts";
import type { SessionStore } from "../../session/ports.ts";
import { secondsLeft } from "../../session/time.ts";
import { SHARED_ERRORS } from "../errors/connect-errors.ts";
import { requestContextOf } from "../request-context.ts";
import { credentialOf } from "./credentials.ts";
import type { DeviceCookie } from "./device-cookie.ts";
import { CHALLENGE, challengeValue, PROOF, readSessionId, readSkipped, SESSION_ID, SKIPPED } from "./device-headers.ts";
import { type DpopDeps, provenKey } from "./dpop.ts";
import { type RefusalDeps, refusalOf } from "./refusal.ts";

/** The path of RenewDevice, which is also in proto/auth/v1/session.proto. */
const RENEW_PATH = "/v1/auth/device/refresh";

export type DeviceBindingParts = DeviceTools & {
  readonly cookie: DeviceCookie;
  /** The hosts of other origins whose pages may refresh. */
  readonly allowedInitiators: readonly string[];
};

export type DeviceServiceDeps = RefusalDeps & {
  readonly store: Pick<SessionStore, "find" | "registerKey">;
  readonly device: DeviceBindingParts;
};

/** The browser must have a fresh device cookie for refreshes, over JSON and over RPC. The last matching rule decides. */
const SCOPE_RULES = [
  { type: "exclude", domain: "*", path: "/" },
  { type: "include", domain: "*", path: "/v1/auth/refresh" },
  { type: "include", domain: "*", path: "/auth.v1.SessionService/Refresh" },
];

export async function register(deps: DeviceServiceDeps, context: HandlerContext) {
  const { device } = deps;
  const { tokens } = credentialOf(context, "registerDevice");
  const proof = proofOf(context.requestHeader);
  const result = await registerDevice(deps, device, tokens, proof, requestContextOf(context));
  if (result.ok) return { session: grant(device, result, context) };
  if (result.reason === "proof_required") {
    throw device.offers ? proofRequired(result, context) : new ServiceError("E404_NOT_FOUND");
  }
  throw refusalOf(deps, result, context);
}

export async function renew(deps: DeviceServiceDeps, context: HandlerContext) {
  const { requestHeader } = context;
  const { presented } = credentialOf(context, "renewDevice");
  const named = readSessionId(requestHeader.get(SESSION_ID));
  const requester = requestContextOf(context);
  const result = await renewDevice(deps, deps.device, presented, named, proofOf(requestHeader), requester);
  if (result.ok) return { session: grant(deps.device, result, context) };
  // Neither 200 nor 503 would count as a refusal, and anybody can cause them.
  requester.source.noteUnauthenticated();
  if (result.reason === "proof_required") throw proofRequired(result, context);
  if (result.reason === "undecided") throw SHARED_ERRORS.retryLater;
  return { session: { continue: false } };
}

/** Returns the proof of a request. If the header occurs twice, `Headers` joins both proofs to one that is malformed. */
const proofOf = (headers: Headers): string | undefined => headers.get(PROOF) || undefined;

/** Returns what the headers of a request present. @param sid the session of its newest token @throws the errors of `provenKey` */
export function readDeviceHeaders(
  deps: DpopDeps & { readonly device: DeviceBindingParts },
  context: HandlerContext,
  sid: SessionId,
): DeviceHeaders {
  const { requestHeader } = context;
  const cookies = deps.device.cookie.read(requestHeader.get("cookie"));
  const proof = provenKey(deps, context, sid);
  return { cookies, skipped: readSkipped(requestHeader.get(SKIPPED)), ...(proof && { proof }) };
}

function grant(device: DeviceBindingParts, outcome: DeviceGranted, context: HandlerContext) {
  const { session, cookie: value, mark, challenge } = outcome;
  const { cookie } = device;
  const { responseHeader } = context;
  const lifeLeft = secondsLeft(session.absoluteExpiresAt, device.now(session.sid));
  for (const line of cookie.set(value, mark, lifeLeft)) responseHeader.append("set-cookie", line);
  responseHeader.set(CHALLENGE, challengeValue(challenge, session.sid));
  const origin = requestContextOf(context).source.origin();
  return {
    sessionIdentifier: session.sid,
    refreshUrl: RENEW_PATH,
    scope: { ...(origin !== null && { origin }), includeSite: false, scopeSpecification: SCOPE_RULES },
    credentials: [{ type: "cookie", name: cookie.name, attributes: cookie.attributes }],
    allowedRefreshInitiators: [...device.allowedInitiators],
  };
}

function proofRequired({ challenge, sid }: ProofRequired, { responseHeader }: HandlerContext): Error {
  responseHeader.set(CHALLENGE, challengeValue(challenge, sid));
  return new ServiceError("E403_FORBIDDEN", "a device proof is required");
}
