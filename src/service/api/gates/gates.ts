/**
 * The gates of every API. A gate decides about a call before its message is read. Credentials have gates of their own
 * (public/credentials.ts, admin/authentication.ts).
 */
import type { DescService } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { Health } from "../../../../gen/grpc/health/v1/health_pb.ts";
import {
  type CrossSiteRules,
  crossSiteFault,
  type MissingPermission,
  missingPermissions,
} from "../../../platform/net/cross-site.ts";
import { acceptCompression } from "../connect-options.ts";
import { SHARED_ERRORS } from "../errors/connect-errors.ts";
import { requestContextOf } from "../request-context.ts";

/**
 * Decides about a call before its message is read. It returns the error of a call that it refuses, or throws it, or rejects with it. A gate
 * that every caller can fail returns its error: a flood of refused calls costs less if nothing is thrown.
 */
export type Gate = (context: HandlerContext) => Refusal | Promise<Refusal>;
type Refusal = ConnectError | undefined;

/** Returns a gate that passes calls through all gates of a list, in order. The message of a call that has passed them is read next. */
export function gatesInOrder(gates: readonly Gate[]): Gate {
  return (context) => {
    for (let at = 0; at < gates.length; at++) {
      const refusal = gates[at]?.(context);
      if (refusal instanceof Promise) return passLater(refusal, gates.slice(at + 1), context);
      if (refusal !== undefined) return refusal;
    }
    requestContextOf(context).isReading = true;
    return undefined;
  };
}

async function passLater(first: Promise<Refusal>, others: readonly Gate[], context: HandlerContext): Promise<Refusal> {
  return (await first) ?? gatesInOrder(others)(context);
}

/** RPCs that must work under overload. WatchRevocations (the revocation feed) is among them, because it is expensive only at its start. */
const URGENT: ReadonlySet<string> = new Set([
  "Logout",
  "LogoutByCookie",
  "RevokeSession",
  "RevokeOtherSessions",
  "RevokeSubjectSessions",
  "RevokeAllSessions",
  "RevokeToken",
  "RevokeGlobally",
  // They may take a right away, as the end of a session does.
  "UpdateSession",
  "UpdateSubjectSessions",
  "WatchRevocations",
]);

/** RPCs that present a refresh token. The rules of rotation forbid processing such a request late. */
const ROTATING_RPCS: ReadonlySet<string> = new Set(["Refresh", "GrantToken", "RegisterDevice", "RenewDevice"]);

/** How long a request may have waited in this process, in ms. Requests that have waited longer are refused. */
type CallTolerances = { readonly rotationMs: number; readonly othersMs: number };

/**
 * Refuses calls under overload, all but probes and the `URGENT` ones, and after a stall of the process those that may be too old.
 * @param accept returns whether an ordinary call is accepted now
 */
export function admissionControl(accept: () => boolean, tolerances: CallTolerances): Gate {
  return (context) => {
    const { method } = context;
    if (method.parent.typeName === Health.typeName) return undefined;
    const { waitMs } = requestContextOf(context);
    // The tolerances do not apply to streams, which continue to do work long after their request was sent.
    if (waitMs > 0 && method.methodKind === "unary") {
      const isRotation = ROTATING_RPCS.has(method.name);
      if (waitMs > (isRotation ? tolerances.rotationMs : tolerances.othersMs)) return SHARED_ERRORS.stalled;
    }
    return URGENT.has(method.name) || accept() ? undefined : SHARED_ERRORS.overloaded;
  };
}

/** The settings, in words, that would have permitted a refused request. One is absent if nothing can permit it. */
export type Permissions = Partial<Readonly<Record<MissingPermission, string>>>;

export const PASS_ON_HOST = "a proxy in front that passes on Host as it came, and TRUST_PROXY where it ends TLS";

type Deps = {
  readonly metrics: { crossSiteRefused(header: string): void };
  readonly log: { info(fields: object, message: string): void };
};

/**
 * Refuses requests from other sites, which browsers report, before any credential is read (OWASP ASVS 5.0, 3.5).
 * @param permissions are logged with a refusal, for operators who must find out why a front end has no access
 * @param exempt a service whose credentials browsers never send by themselves
 */
export function crossSiteDefence(
  rules: CrossSiteRules,
  permissions: Permissions,
  { metrics, log }: Deps,
  exempt?: DescService,
): Gate {
  return (context) => {
    const { requestHeader, method } = context;
    if (method.parent === exempt) return undefined;
    const request = requestContextOf(context);
    const sender = { site: requestHeader.get("sec-fetch-site"), origin: requestHeader.get("origin") };
    const header = crossSiteFault(sender, (origin) => origin === request.source.origin(), rules);
    if (header === undefined) return undefined;
    metrics.crossSiteRefused(header);
    const ownOrigin = request.source.origin();
    const missing = missingPermissions(sender, ownOrigin, rules);
    const allowedBy = missing.flatMap((permission) => permissions[permission] ?? []);
    const fields = { header, value: requestHeader.get(header), ownOrigin, allowedBy };
    log.info({ event: "cross_site_refused", ...fields, ...request.correlation() }, "cross_site_refused");
    return SHARED_ERRORS.crossSite;
  };
}

type Encoded = Pick<
  HandlerContext,
  "protocolName" | "requestMethod" | "requestHeader" | "responseHeader" | "url" | "method"
>;

const ACCEPTED = acceptCompression.map(({ name }) => name);
const KNOWN: ReadonlySet<string> = new Set(["identity", ...ACCEPTED]);

/**
 * Returns the error for an unknown compression, or for a message in a query that is not base64 although the query says so (`base64=1`).
 * connect-es would refuse both, but with errors that differ from its others only by their text. The routes of the HTTP layer have a check
 * of their own.
 */
export function refusalOfEncoding(context: Encoded): ConnectError | undefined {
  const { protocolName, requestMethod, requestHeader, url } = context;
  const query = protocolName === "connect" && requestMethod === "GET" ? new URL(url).searchParams : undefined;
  const compression = query ? query.get("compression") : requestHeader.get(compressionHeader(context));
  if (compression !== null && !KNOWN.has(compression)) return unknownEncoding(context);
  return query?.get("base64") === "1" ? refusalOfBase64(query.get("message") ?? "") : undefined;
}

/** Returns the error for an unknown compression. The response lists the accepted ones in the header that its protocol has for them. */
function unknownEncoding(context: Encoded): ConnectError {
  const name = compressionHeader(context).replace(/(?:content-)?encoding$/, "accept-encoding");
  context.responseHeader.set(name, ACCEPTED.join(","));
  return context.protocolName === "connect" ? SHARED_ERRORS.unknownEncoding : SHARED_ERRORS.unknownGrpcEncoding;
}

function compressionHeader({ protocolName, method }: Encoded): string {
  if (protocolName !== "connect") return "grpc-encoding";
  return method.methodKind === "unary" ? "content-encoding" : "connect-content-encoding";
}

function refusalOfBase64(message: string): ConnectError | undefined {
  try {
    base64Decode(message);
    return undefined;
  } catch (cause) {
    return new ConnectError("the message is not base64", Code.InvalidArgument, undefined, undefined, cause);
  }
}
