/** Whether the service runs, and whether it is what its addresses lead to. */
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Config } from "../config/config.ts";
import { KeyRingFault } from "../tokens/ring.ts";
import { readRing } from "../tokens/ring-file.ts";
import { type Finding, messageOf, reportOf } from "./finding.ts";

/** For a whole response: what listens there may send without an end. */
const TIMEOUT_MS = 3_000;

const { ok, warning, fault } = reportOf("service");

export async function checkService(config: Config): Promise<readonly Finding[]> {
  const findings = await Promise.all([
    checkListener("the public API", config, config.host, config.port),
    checkListener("the admin API", config, config.adminHost, config.adminPort),
    checkIssuer(config),
  ]);
  return findings.flat();
}

async function checkListener(what: string, config: Config, host: string, port: number): Promise<readonly Finding[]> {
  if (port === 0) return [];
  const scheme = config.tlsCertFile === undefined ? "http" : "https";
  const near = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  const url = `${scheme}://${near.includes(":") ? `[${near}]` : near}:${port}`;
  try {
    // The certificate is not for this address, and is judged by its own check.
    const { status, body } = await get(`${url}/readyz`, { rejectUnauthorized: false });
    if (status === 200) return [ok(`${what} at ${url} is ready`)];
    if (status === 503)
      return [
        fault(
          `${what} at ${url} is not ready: ${body.trim().slice(0, 200)}`,
          "see the log of the service, and the findings above",
        ),
      ];
    return [fault(`${url} responds ${status} to /readyz: it is another program`, "stop it, or choose another port")];
  } catch (error) {
    if (isRefused(error)) return [ok(`${what} does not run at ${url}: the port is free`)];
    return [
      warning(
        `${url} does not respond as ${what} (${messageOf(error)})`,
        "stop what listens there, or choose another port",
      ),
    ];
  }
}

/** Whether ISSUER leads to this service, by its keys. */
async function checkIssuer({ issuer, keysFile }: Config): Promise<readonly Finding[]> {
  if (issuer === undefined) return [];
  const url = `${issuer.replace(/\/+$/, "")}/.well-known/jwks.json`;
  const remedy =
    "correct ISSUER, or the proxy in front; from this machine it may be out of reach although browsers reach it";
  try {
    const { status, body } = await get(url, {});
    const kids = status === 200 ? kidsOf(body) : undefined;
    if (kids === undefined) return [warning(`${url} responds ${status} and no key set`, remedy)];
    const own = await ownKids(keysFile);
    if (own !== undefined && !own.some((kid) => kids.includes(kid))) {
      return [
        fault(
          `${url} has none of the keys of KEYS_FILE: it is another service, or an instance has another key ring`,
          "give all instances one KEYS_FILE, and correct ISSUER",
        ),
      ];
    }
    return [ok(`ISSUER leads to the service: ${url}`)];
  } catch (error) {
    return [warning(`${url} cannot be reached (${messageOf(error)})`, remedy)];
  }
}

async function ownKids(path: string): Promise<readonly string[] | undefined> {
  try {
    return (await readRing(path)).signing.map(({ kid }) => kid);
  } catch (error) {
    if (error instanceof KeyRingFault) return undefined; // found by the check of the keys
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

const isRefused = (error: unknown) => error instanceof Error && "code" in error && error.code === "ECONNREFUSED";

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
    request.once("error", fail).end();
  });
}
