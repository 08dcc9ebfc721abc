import { returnPath } from "@session-service/server";
import type { PageServerLoad } from "./$types";

export const load: PageServerLoad = ({ url: { searchParams } }) => ({
  next: returnPath(searchParams.get("next"), "/login"),
  hasFailed: searchParams.has("failed"),
});
