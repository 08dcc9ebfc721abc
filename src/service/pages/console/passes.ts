/** Admin tokens that exist for one call of an operator, and in this process alone: operators have no admin token of their own. */
import { hash, randomBytes } from "node:crypto";
import type { HttpResponse } from "../../../platform/listener/handler.ts";
import type { Admin, AdminAccess } from "../../session/admin/access.ts";

export interface Passes extends AdminAccess {
  /** Returns a token of the admin that is valid until the response is closed. */
  issue(admin: Admin, response: Pick<HttpResponse, "once">): string;
}

const digest = (token: string) => hash("sha256", token, "base64url");

/** Adds passes to the credentials of the admin API. */
export function createPasses(access: AdminAccess): Passes {
  const passes = new Map<string, Admin>();
  return {
    byToken: (token) => (passes.size === 0 ? undefined : passes.get(digest(token))) ?? access.byToken(token),
    holds: (admin) => access.holds(admin),
    byCertificate: (names) => access.byCertificate(names),
    issue(admin, response) {
      const token = randomBytes(32).toString("base64url");
      const key = digest(token);
      passes.set(key, admin);
      response.once("close", () => passes.delete(key));
      return token;
    },
  };
}
