/** Refuses requests from other sites, which browsers report, before any credential is read (OWASP ASVS 5.0, 3.5). */
import type { HandlerContext } from "@connectrpc/connect";
import type { Correlation } from "../../session/audit.ts";
import { SHARED_ERRORS } from "../errors/connect-errors.ts";
import { requestContextOf } from "../request-context.ts";

type CrossSiteRules = {
  readonly allowedOrigins: readonly string[];
  /** Whether sibling domains under the same registrable domain may call. */
  readonly allowSameSite: boolean;
  /** Whether allowed origins may be on other sites. That only makes sense with SameSite=None cookies. */
  readonly allowCrossSite: boolean;
};

/**
 * Returns the name of the header because of which a request must be refused; undefined if the request is allowed. A request with neither
 * `Origin` nor `Sec-Fetch-Site` is allowed, because it comes from no browser.
 */
export function crossSiteFault(
  headers: Pick<Headers, "get">,
  target: { origin(): string | null },
  rules: CrossSiteRules,
): "sec-fetch-site" | "origin" | undefined {
  const origin = headers.get("origin");
  const listed = origin !== null && rules.allowedOrigins.includes(origin);
  switch (headers.get("sec-fetch-site")) {
    case null:
    case "same-origin":
    case "none":
      break;
    case "same-site":
      if (!rules.allowSameSite) return "sec-fetch-site";
      break;
    case "cross-site":
      if (!rules.allowCrossSite || !listed) return "sec-fetch-site";
      break;
    default:
      return "sec-fetch-site";
  }
  if (origin === null || listed) return undefined;
  return origin === target.origin() ? undefined : "origin";
}

/** A refused request, for operators who must find out why a front end has no access. */
export type CrossSiteRefusal = {
  readonly header: string;
  readonly value: string | null;
  readonly ownOrigin: string | null;
  /** The permissions (of origins and sites, by the configuration) that a request of a browser needs and lacks. */
  readonly missing: readonly MissingPermission[];
  readonly correlation: Correlation;
};

/**
 * `origin`: the origin is not listed. `same_site`, `cross_site`: callers of this kind are not allowed at all. `host`: the browser sent
 * the request to its own origin, so a proxy has replaced the host or the scheme on the way.
 */
export type MissingPermission = "host" | "origin" | "same_site" | "cross_site";

function missingPermissions(
  headers: Pick<Headers, "get">,
  ownOrigin: string | null,
  rules: CrossSiteRules,
): readonly MissingPermission[] {
  const origin = headers.get("origin");
  const site = headers.get("sec-fetch-site");
  const missing: MissingPermission[] = [];
  if (site === "same-site" && !rules.allowSameSite) missing.push("same_site");
  if (site === "cross-site" && !rules.allowCrossSite) missing.push("cross_site");
  if (site === "same-origin") return ["host"];
  const own = origin === null || origin === ownOrigin;
  if (!own && origin !== "null" && !rules.allowedOrigins.includes(origin)) missing.push("origin");
  return missing;
}

export function crossSiteDefence(
  rules: CrossSiteRules,
  onRefused: (refusal: CrossSiteRefusal) => void,
): (context: HandlerContext) => void {
  return (context) => {
    const { requestHeader } = context;
    const request = requestContextOf(context);
    const { source } = request;
    const header = crossSiteFault(requestHeader, source, rules);
    if (header === undefined) return;
    onRefused({
      header,
      value: requestHeader.get(header),
      ownOrigin: source.origin(),
      missing: missingPermissions(requestHeader, source.origin(), rules),
      correlation: request.correlation(),
    });
    throw SHARED_ERRORS.crossSite;
  };
}
