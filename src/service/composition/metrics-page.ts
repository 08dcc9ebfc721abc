import { clientCertificateOf } from "../../platform/listener/client-certificate.ts";
import type { HttpRequest } from "../../platform/listener/listener.ts";
import { type Page, type Render, shareWhileSent } from "../../platform/listener/pages.ts";
import { identifyAdmin } from "../api/admin/credential.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { AdminAccess } from "../session/admin/access.ts";

const UNAUTHENTICATED: Page = {
  status: 401,
  type: "text/plain",
  body: "authentication failed\n",
  headers: { "www-authenticate": "Bearer" },
};
const NOT_ALLOWED: Page = { status: 403, type: "text/plain", body: "not allowed\n" };

/** @param access requires a credential with the scope `metrics`; if it is undefined, every client of the listener may read the page */
export function metricsPage(metrics: Metrics, access: AdminAccess | undefined): Render {
  const current = shareWhileSent(async () => {
    const { type, body } = await metrics.expose();
    return { status: 200, type, body: Buffer.from(body) };
  });
  return (request) => (access && refusal(access, request)) ?? current();
}

function refusal(access: AdminAccess, request: HttpRequest): Page | undefined {
  const identified = identifyAdmin(access, request.headers.authorization, clientCertificateOf(request));
  if (!identified.ok) return UNAUTHENTICATED;
  return identified.caller.may("metrics") ? undefined : NOT_ALLOWED;
}
