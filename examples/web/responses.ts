/** Sends responses with the headers that all of them have. */
import type { ServerResponse } from "node:http";

const SECURITY_HEADERS = {
  // Pages load only what this origin serves, and make no HTML from text, because a script of an attacker could use the session.
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join("; "),
  "x-content-type-options": "nosniff",
  "referrer-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
};

export function send(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string | readonly string[]>>,
  body: string,
): void {
  response.writeHead(status, { ...SECURITY_HEADERS, ...headers }).end(body);
}

export function respond(response: ServerResponse, status: number, body: unknown, headers = {}): void {
  const own = { "content-type": "application/json", "cache-control": "no-store" };
  send(response, status, { ...own, ...headers }, JSON.stringify(body));
}
