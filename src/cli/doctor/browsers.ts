/** Checks whether browsers keep the cookie and send it where it is needed. Settings that are valid separately can fail together. */
import type { Config } from "../../config/config.ts";
import { isLoopback } from "../../config/loopback.ts";
import type { Report } from "./finding.ts";

export function checkBrowsers(report: Report, config: Config): void {
  const own = config.issuer === undefined ? undefined : new URL(config.issuer);
  if (own !== undefined) checkOwn(report, config, own);
  checkOrigins(report, config, own);
  if (report.findings.length === 0) report.ok("browsers keep the cookie, and send it from the allowed origins");
}

function checkOwn(report: Report, { cookie, trustProxy, tlsCertFile }: Config, own: URL): void {
  const isSecure = own.protocol === "https:";
  const isLocal = isLoopback(own.hostname);
  if (cookie.secure && !isSecure && !isLocal) {
    report.fault(
      `ISSUER is ${own.origin}, without TLS: browsers drop a Secure cookie there`,
      "serve it by https and set ISSUER to that, or COOKIE_SECURE=false in a test",
    );
  }
  if (!cookie.secure && isSecure) {
    report.warning(
      "COOKIE_SECURE=false although ISSUER is https: the cookie travels in clear text, too",
      "remove COOKIE_SECURE",
    );
  }
  if (isSecure && tlsCertFile === undefined && trustProxy === 0) {
    report.fault(
      "ISSUER is https, but the service has no certificate and trusts no proxy: every request of a browser is refused as cross-site",
      "set TRUST_PROXY to the number of proxies in front, or TLS_CERT_FILE and TLS_KEY_FILE",
    );
  }
  const domain = cookie.domain?.replace(/^\./, "").toLowerCase();
  if (domain !== undefined && own.hostname !== domain && !own.hostname.endsWith(`.${domain}`)) {
    report.fault(
      `COOKIE_DOMAIN is ${domain}, which ${own.hostname} (ISSUER) is not below: browsers drop the cookie`,
      `set it to ${own.hostname} or a domain above, or remove it`,
    );
  } else if (domain !== undefined && !domain.includes(".") && domain !== "localhost") {
    const found = `COOKIE_DOMAIN is ${domain}, a whole top-level domain: browsers drop the cookie`;
    report.fault(found, "name your own domain");
  }
}

function checkOrigins(report: Report, { allowedOrigins, allowSameSite, cookie }: Config, own: URL | undefined): void {
  const others = allowedOrigins.filter((origin) => origin !== own?.origin);
  if (cookie.sameSite === "None" && others.length === 0) {
    report.warning(
      "COOKIE_SAMESITE=None without ALLOWED_ORIGINS: no page on another site may call, so it only weakens the cookie",
      "remove COOKIE_SAMESITE",
    );
  }
  if (!allowSameSite && cookie.sameSite !== "None" && others.length > 0) {
    report.fault(
      `ALLOW_SAME_SITE=false refuses ${others.join(", ")} of ALLOWED_ORIGINS`,
      "remove ALLOW_SAME_SITE, or these origins",
    );
  }
  if (cookie.sameSite === "Strict" && others.length > 0) {
    report.ok("COOKIE_SAMESITE=Strict: pages of the same site send the cookie, links from other sites do not");
  }
}
