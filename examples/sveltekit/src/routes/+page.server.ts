import type { PageServerLoad } from "./$types";

export const load: PageServerLoad = ({ locals: { user } }) => ({
  state: user.state,
  subject: user.state === "active" ? user.claims.sub : undefined,
});
