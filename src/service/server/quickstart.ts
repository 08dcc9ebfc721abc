import { hasOwnAdminToken } from "../config/admin.ts";
import type { Config } from "../config/config.ts";
import { isLoopback } from "../config/loopback.ts";

/** Returns whether the service was started only to try it out: on the embedded store, on loopback, and without settings of a deployment. */
export function mayOfferSignIn(config: Config): boolean {
  const { redis, docs, host, tlsCertFile, trustProxy, issuer, audiences, allowedOrigins, cookie } = config;
  const isDeployed =
    redis !== undefined ||
    !hasOwnAdminToken(config) ||
    tlsCertFile !== undefined ||
    trustProxy !== 0 ||
    issuer !== undefined ||
    audiences !== undefined ||
    allowedOrigins.length > 0 ||
    cookie.domain !== undefined;
  return docs && !isDeployed && isLoopback(host);
}

/** Quotes an argument for a POSIX shell. */
function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Replaces the wildcard address in a URL by the loopback address, because clients cannot connect to a wildcard address. */
function near(url: string): string {
  return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}

type Quickstart = {
  readonly publicUrl: string;
  readonly adminUrl: string;
  readonly tokenFile: string;
  /** The key for signing in on the reference page. */
  readonly docsKey: string | undefined;
  readonly console: boolean;
};

/** Returns what to do first with a service that was just started: at most five lines. */
export function quickstart({ publicUrl, adminUrl, tokenFile, docsKey, console }: Quickstart): string {
  const admin = near(adminUrl);
  const curl = publicUrl.startsWith("https:") ? "curl -sk" : "curl -s";
  return `
Try it, in another terminal, in this directory: create a session
  ${curl} ${admin}/auth.admin.v1.SessionAdminService/CreateSession -H "Authorization: Bearer $(cat ${shellWord(tokenFile)})" -H 'Content-Type: application/json' -d '{"subject":"alice"}'
The API, to read and to try: ${near(publicUrl)}/docs${docsKey === undefined ? "" : `#key=${docsKey}`}
${
  console
    ? `Users and their sessions:    ${admin}/console (sign in with the token in ${shellWord(tokenFile)})
`
    : ""
}`;
}
