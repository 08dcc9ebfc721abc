import { type Client, Code, ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { SessionAdminService } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import type { VerifierOptions } from "../options.ts";

export type AdminClient = Client<typeof SessionAdminService>;

/** The size of the largest response or batch of the feed, in bytes, both as it is sent and decompressed. A batch has about 60 KiB. */
export const MAX_RESPONSE_BYTES = 4_194_304;

const HEADER_TEXT = /^[\x20-\x7e]+$/;

export type AdminClientOptions = Pick<
  VerifierOptions,
  "adminUrl" | "adminToken" | "nodeOptions" | "policy" | "transport" | "interceptors"
>;

/** Returns a client of the admin API over what `connect` creates; undefined without `adminUrl` and `transport`. @throws TypeError */
export function createClientBy(
  options: AdminClientOptions,
  connect: (adminUrl: string, interceptors: Interceptor[]) => Transport,
): AdminClient | undefined {
  const { adminUrl, adminToken, nodeOptions, policy, transport } = options;
  if (transport !== undefined) return createClient(SessionAdminService, transport);
  if (adminUrl === undefined) {
    if (policy !== undefined) throw new TypeError("createVerifier: a policy needs adminUrl");
    return undefined;
  }
  if (adminToken === undefined && nodeOptions === undefined) {
    throw new TypeError("createVerifier: adminUrl needs adminToken, or nodeOptions with a client certificate");
  }
  const authenticate: Interceptor = (next) => (request) => {
    const token = (typeof adminToken === "function" ? adminToken() : adminToken)?.trim();
    if (token === undefined) return next(request);
    // The error of `Headers` would contain the token.
    if (!HEADER_TEXT.test(token))
      throw new ConnectError("adminToken has characters that a header cannot carry", Code.Unauthenticated);
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
  return createClient(SessionAdminService, connect(adminUrl, [...(options.interceptors ?? []), authenticate]));
}
