/** Forwards calls of the browser kit to the service. In production, a reverse proxy may do this instead. */
import { SERVICE } from "../../../../lib/sessions.server";
import type { RequestHandler } from "./$types";

const pass: RequestHandler = async ({ request, url, getClientAddress }) => {
  const headers = new Headers(request.headers);
  headers.append("x-forwarded-for", getClientAddress());
  const body = request.method === "GET" ? undefined : await request.arrayBuffer();
  return fetch(SERVICE + url.pathname + url.search, { method: request.method, headers, body, redirect: "manual" });
};

export const GET = pass;
export const POST = pass;
export const DELETE = pass;
