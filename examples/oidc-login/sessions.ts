/** The part of the session service's admin API that a login needs. Its token needs only the scope `sessions:create`. */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { SessionAdminService } from "./gen/auth/admin/v1/session_admin_pb.js";
import type { User } from "./provider.js";

export type Browser = { readonly userAgent: string; readonly ipAddress: string };

export function connectSessions(adminUrl: string, adminToken: () => string) {
  // HTTP/1.1 is used, because over HTTP/2 a network failure in connect-node may end the process.
  const transport = createConnectTransport({ baseUrl: adminUrl, httpVersion: "1.1", defaultTimeoutMs: 5000 });
  const admin = createClient(SessionAdminService, transport);
  return {
    /**
     * @param replaced the id of this browser's earlier session, which ends
     * @returns the `Set-Cookie` headers of the new session
     */
    async create({ subject, authTimeMs, amr, acr }: User, client: Browser, replaced = ""): Promise<string[]> {
      const { setCookies } = await admin.createSession(
        {
          subject,
          client,
          amr,
          replacesSessionId: replaced,
          ...(acr !== undefined && { acr }),
          ...(authTimeMs !== undefined && { authTime: timestampFromMs(authTimeMs) }),
        },
        { headers: { authorization: `Bearer ${adminToken()}` } },
      );
      return setCookies;
    },
  };
}
