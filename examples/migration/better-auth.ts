/** Sessions of better-auth: MIGRATE_COOKIES=better-auth.session_token */
import type { Auth } from "better-auth";
import { migration } from "./service.ts";

/** @param auth what `betterAuth(…)` returns */
export const migrate = ({ api }: { readonly api: Pick<Auth["api"], "getSession"> }) =>
  migration(async ({ headers }) => {
    const found = await api.getSession({ headers });
    return found === null
      ? undefined
      : { subject: found.user.id, claims: { email: found.user.email }, old_session_id: found.session.id };
  });
