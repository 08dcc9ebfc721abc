/** Checks whether the service runs, and whether its addresses lead to it. */
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { errorCode, errorMessage } from "../../../platform/files/error-code.ts";
import { refuseUpgrade } from "../../../platform/net/refuse-upgrade.ts";
import { localUrl } from "../../config/command-line.ts";
import type { Config } from "../../config/config.ts";
import { KeyRingFault } from "../../tokens/ring.ts";
import { readRing } from "../../tokens/ring-file.ts";
import { type Finding, type Report, reportOf } from "./finding.ts";

/** How long a whole response may take, in ms, because another server may send without end. */
const TIMEOUT_MS = 3_000;

const JWKS_PATH = "/.well-known/jwks.json";

export async function checkService(report: Report, config: Config): Promise<void> {
  const own = await ownKids(config.keysFile);
  const findings = await Promise.all([
    checkListener("the public API", own, config, config.host, config.port),
    checkListener("the admin API", own, config, config.adminHost, config.adminPort),
    checkIssuer(config, own),
  ]);
  report.findings.push(...findings.flat());
}

/** The ids of the keys that this installation signs with; empty if it has no key ring yet, undefined if the ring cannot be read. */
type OwnKids = readonly string[] | undefined;

async function checkListener(
  what: string,
  own: OwnKids,
  config: Config,
  host: string,
  port: number,
): Promise<readonly Finding[]> {
  const url = localUrl(host, port, config.tlsCertFile !== undefined);
  if (url === undefined) return [];
  const { ok, warning, fault, findings } = reportOf("service");
  const variable = what === "the admin API" ? "ADMIN_PORT" : "PORT";
  try {
    // The certificate is not issued for this address, and is checked separately, so it is not verified here.
    const keys = await get(url + JWKS_PATH, { rejectUnauthorized: false });
    const kids = keys.status === 200 ? kidsOf(keys.body) : undefined;
    if (kids === undefined || (own !== undefined && !own.some((kid) => kids.includes(kid)))) {
      const which = kids === undefined ? "another program" : "a service with other keys than those of KEYS_FILE";
      fault(`${url} is in use by ${which}: ${what} cannot listen there`, `set ${variable} to a free port`);
      return findings;
    }
    const { status, body } = await get(`${url}/readyz`, { rejectUnauthorized: false });
    if (status === 200) ok(`${what} at ${url} is ready`);
    else fault(`${what} at ${url} is not ready: ${body.trim().slice(0, 200)}`, "see the log of the service");
  } catch (error) {
    const remedy = `find out what listens at port ${port}, and end it if it is no instance of the service`;
    if (errorCode(error) === "ECONNREFUSED") ok(`${what} does not run at ${url}: the port is free`);
    else warning(`${url} does not respond as ${what} (${errorMessage(error)})`, remedy);
  }
  return findings;
}

/** Checks by the published keys whether ISSUER leads to this service. */
async function checkIssuer(config: Config, own: OwnKids): Promise<readonly Finding[]> {
  const { issuer, host, port, tlsCertFile } = config;
  if (issuer === undefined) return [];
  const url = issuer.replace(/\/+$/, "") + JWKS_PATH;
  const { ok, warning, fault, findings } = reportOf("service");
  try {
    const { status, body } = await get(url, {});
    const kids = status === 200 ? kidsOf(body) : undefined;
    if (kids === undefined)
      warning(`${url} responds ${status} and no key set`, "correct ISSUER, or the proxy in front");
    else if (own !== undefined && own.length > 0 && !own.some((kid) => kids.includes(kid))) {
      fault(
        `${url} has none of the keys of KEYS_FILE: it is another service, or an instance has another key ring`,
        "give all instances one KEYS_FILE, and correct ISSUER",
      );
    } else ok(`ISSUER leads to the service: ${url}`);
  } catch (error) {
    // Without a proxy in front, the check of the public API has found that the service does not run.
    const isOwnListener = issuer === localUrl(host, port, tlsCertFile !== undefined);
    if (isOwnListener && errorCode(error) === "ECONNREFUSED") return [];
    const found = `${url} cannot be reached from this machine (${errorMessage(error)})`;
    warning(found, "ask for it where browsers are; if it does not respond there, correct ISSUER");
  }
  return findings;
}

async function ownKids(path: string): Promise<OwnKids> {
  try {
    return (await readRing(path)).signing.map(({ kid }) => kid);
  } catch (error) {
    if (error instanceof KeyRingFault) return error.absent ? [] : undefined; // The check of the keys reports this fault.
    throw error;
  }
}

function kidsOf(body: string): readonly unknown[] | undefined {
  try {
    return JSON.parse(body).keys.map((key: { readonly kid?: unknown }) => key.kid);
  } catch {
    return undefined;
  }
}

function get(
  url: string,
  options: { readonly rejectUnauthorized?: boolean },
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const send = url.startsWith("https:") ? httpsRequest : httpRequest;
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const fail = (error: Error) =>
      reject(signal.aborted ? new Error(`no response within ${TIMEOUT_MS / 1000} s`) : error);
    const request = send(url, { ...options, agent: false, signal }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text: string) => {
        body += text.slice(0, 65_536 - body.length);
      });
      response.once("end", () => resolve({ status: response.statusCode ?? 0, body }));
      response.once("error", fail);
    });
    refuseUpgrade(request, fail).once("error", fail).end();
  });
}
