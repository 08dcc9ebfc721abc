import { signedIn } from "../../../lib/session";

export const runtime = "nodejs";
export const dynamic = "force-dynamic";

export const GET = signedIn((_request, claims) => {
  // A claim of CreateSession: authorization is the application's.
  if (claims.role !== "editor") return Response.json({ error: "editors only" }, { status: 403 });
  return Response.json({ hello: claims.sub });
});
