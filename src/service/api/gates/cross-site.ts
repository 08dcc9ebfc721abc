/** Refuses requests from other sites, which browsers report, before any credential is read (OWASP ASVS 5.0, 3.5). */
import type { DescService } from "@bufbuild/protobuf";
import {
  type CrossSiteRules,
  crossSiteFault,
  type MissingPermission,
  missingPermissions,
} from "../../../platform/net/cross-site.ts";
import { SHARED_ERRORS } from "../errors/connect-errors.ts";
import { requestContextOf } from "../request-context.ts";
import type { Gate } from "./gate.ts";

/** What would have let a refused request in, in the words of the configuration. What is absent cannot be permitted. */
export type Permissions = Partial<Readonly<Record<MissingPermission, string>>>;

export const PASS_ON_HOST = "a proxy in front that passes on Host as it came, and TRUST_PROXY where it ends TLS";

type Deps = {
  readonly metrics: { crossSiteRefused(header: string): void };
  readonly log: { info(fields: object, message: string): void };
};

/**
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
    const { source } = request;
    const sender = { site: requestHeader.get("sec-fetch-site"), origin: requestHeader.get("origin") };
    const header = crossSiteFault(sender, (origin) => origin === source.origin(), rules);
    if (header === undefined) return undefined;
    metrics.crossSiteRefused(header);
    const ownOrigin = source.origin();
    const missing = missingPermissions(sender, ownOrigin, rules);
    const allowedBy = missing.flatMap((permission) => permissions[permission] ?? []);
    const fields = { header, value: requestHeader.get(header), ownOrigin, allowedBy };
    log.info({ event: "cross_site_refused", ...fields, ...request.correlation() }, "cross_site_refused");
    return SHARED_ERRORS.crossSite;
  };
}
