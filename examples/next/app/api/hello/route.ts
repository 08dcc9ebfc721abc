import { signedIn } from "../../../lib/session";

export const runtime = "nodejs";
export const dynamic = "force-dynamic";

export const GET = signedIn((_request, claims) => {
  // `role` is a claim that the login has passed to CreateSession. The session service does not interpret it.
  if (claims.role !== "editor") return Response.json({ error: "editors only" }, { status: 403 });
  return Response.json({ hello: claims.sub });
});
