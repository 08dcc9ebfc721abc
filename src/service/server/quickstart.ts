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
  readonly cookieName: string;
  /** The key for signing in on the reference page. */
  readonly docsKey: string | undefined;
  readonly console: boolean;
};

export function quickstart(given: Quickstart): string {
  const { tokenFile: adminTokenFile, cookieName, docsKey } = given;
  const [publicUrl, adminUrl] = [near(given.publicUrl), near(given.adminUrl)];
  const curl = publicUrl.startsWith("https:") ? "curl -sk" : "curl -s";
  return `
Try it (paste into another terminal, in this directory):

  # 1. after a login elsewhere: create a session
  S=$(${curl} ${adminUrl}/auth.admin.v1.SessionAdminService/CreateSession \\
    -H "Authorization: Bearer $(cat ${shellWord(adminTokenFile)})" -H 'Content-Type: application/json' -d '{"subject":"alice"}')
  RT=$(echo "$S" | sed 's/.*"refreshToken":"\\([^"]*\\)".*/\\1/')

  # 2. refresh, as a browser does: the cookie jar keeps the successor
  R=$(${curl} -X POST ${publicUrl}/v1/auth/refresh -b "${cookieName}=$RT" -c cookies.txt); echo "$R"
  R=$(${curl} -X POST ${publicUrl}/v1/auth/refresh -b cookies.txt -c cookies.txt); echo "$R"
  AT=$(echo "$R" | sed 's/.*"accessToken":"\\([^"]*\\)".*/\\1/')

  # 3. use the access token
  ${curl} ${publicUrl}/v1/auth/sessions -H "Authorization: Bearer $AT"; echo

  # 4. log out: 200, and from then on 401
  ${curl} -X DELETE ${publicUrl}/v1/auth/logout -H "Authorization: Bearer $AT" -w ' %{http_code}\\n'
  ${curl} -X DELETE ${publicUrl}/v1/auth/logout -H "Authorization: Bearer $AT" -w ' %{http_code}\\n'
  ${curl} -X POST ${publicUrl}/v1/auth/refresh -b cookies.txt -w ' %{http_code}\\n'; rm cookies.txt

The API, to read and to try: ${publicUrl}/docs${docsKey === undefined ? "" : `#key=${docsKey}`}
${given.console ? `Users and their sessions:    ${adminUrl}/console (sign in with the token in ${shellWord(adminTokenFile)})\n` : ""}`;
}
