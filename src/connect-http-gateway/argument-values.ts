/** Parses the values of options. Each function throws an error with a text for the user. */
import { isHttpUrl } from "../platform/net/http-url.ts";
import { isNetwork, isProxyIn } from "../platform/net/proxy-trust.ts";

/** The files of a certificate and of its key, in PEM. */
type CertificatePaths = {
  readonly cert: string;
  readonly key: string;
};

/** The collector that receives the spans, and how many of them. */
type OtlpArguments = {
  readonly url: string;
  /** The file with the headers that are sent to the collector. It may contain a credential. */
  readonly headersFile: string | undefined;
  /** The share of the traces that begin at the gateway which is recorded, from 0 to 1. */
  readonly ratio: number;
  readonly tracesPerSecond: number;
};

type OtlpValues = {
  readonly [name in "otlp-endpoint" | "otlp-headers" | "trace-ratio" | "trace-limit"]?: string | undefined;
};

export function otlpOf(values: OtlpValues): OtlpArguments | undefined {
  const { "otlp-endpoint": endpoint, ...others } = values;
  const { "otlp-headers": headersFile, "trace-ratio": ratio = "1", "trace-limit": limit = "100" } = others;
  if (endpoint === undefined) {
    const given = (["otlp-headers", "trace-ratio", "trace-limit"] as const).find((name) => others[name] !== undefined);
    if (given !== undefined) throw new Error(`--${given} needs --otlp-endpoint`);
    return undefined;
  }
  if (!/^(?:0|1|0?\.\d+|1\.0+)$/.test(ratio)) throw new Error(`--trace-ratio: "${ratio}" is not a number from 0 to 1`);
  const url = `${httpUrlOf("otlp-endpoint", endpoint)}/v1/traces`;
  return { url, headersFile, ratio: Number(ratio), tracesPerSecond: integer("trace-limit", limit, 1) };
}

export function upstreamsOf(texts: readonly string[] = []): readonly [string, ...string[]] {
  const [first, ...others] = texts.map((text) => httpUrlOf("upstream", text));
  if (first === undefined) throw new Error("--upstream is required");
  const { pathname } = new URL(first);
  const other = others.find((url) => new URL(url).pathname !== pathname);
  if (other !== undefined) throw new Error(`--upstream: "${other}" has another path than "${first}"`);
  return [first, ...others];
}

/** Credentials would have no effect, and be logged, so the message does not repeat them. */
function httpUrlOf(option: string, text: string): string {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text))
    throw new Error(`--${option}: "${text}" is not an http(s) URL`);
  if (!isHttpUrl(text) || /[?#]/.test(text))
    throw new Error(`--${option}: a URL with credentials, a query or a fragment has no use here`);
  return text.replace(/\/+$/, "");
}

export function pathOf(option: string, text: string): string {
  if (!/^\/[^?#\s]*$/.test(text)) throw new Error(`--${option}: "${text}" is not a path such as /healthz`);
  return text;
}

export function originsOf(texts: readonly string[] = [], all: boolean): readonly string[] | false {
  if (all && texts.length > 0) throw new Error("--allow-origin has no effect with --allow-cross-site");
  const wrong = texts.find((text) => !/^https?:/.test(text) || URL.parse(text)?.origin !== text);
  if (wrong !== undefined)
    throw new Error(`--allow-origin: "${wrong}" is not an origin such as https://app.example.com`);
  return all ? false : texts;
}

export function trustOf(all: boolean, networks: string | undefined): boolean | ((address: string) => boolean) {
  if (networks === undefined) return all;
  if (all) throw new Error("--trust-proxy has no effect with --trust-forwarded");
  const list = networks.split(",").map((text) => text.trim());
  const wrong = list.find((text) => !isNetwork(text));
  if (wrong !== undefined) throw new Error(`--trust-proxy: "${wrong}" is no network such as 10.0.0.0/8`);
  return isProxyIn(list);
}

export function addressOf(text: string): { host: string; port: number } {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]*)):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (digits === undefined || port > 65_535) throw new Error(`--listen: "${text}" is not HOST:PORT`);
  return { host: bracketed ?? (plain || "0.0.0.0"), port };
}

/** The largest value of an integer argument: the longest delay of Node's timers, in ms. A timer with a longer delay fires at once. */
const MAX_INTEGER = 2 ** 31 - 1;

export function integer(name: string, text: string, min: number): number {
  const value = Number(text);
  if (!/^\d{1,10}$/.test(text) || value < min || value > MAX_INTEGER)
    throw new Error(`--${name}: "${text}" is not an integer from ${min} to ${MAX_INTEGER}`);
  return value;
}

export function oneOf<Name extends string>(option: string, text: string, names: readonly Name[]): Name {
  const name = names.find((other) => other === text);
  if (name === undefined) throw new Error(`--${option}: "${text}" is none of ${names.join(", ")}`);
  return name;
}

/** Parses `--NAME-cert` and `--NAME-key`. */
export function filePair(
  name: string,
  cert: string | undefined,
  key: string | undefined,
): CertificatePaths | undefined {
  if (cert !== undefined && key !== undefined) return { cert, key };
  if ((cert ?? key) !== undefined) throw new Error(`--${name}-cert and --${name}-key belong together`);
  return undefined;
}
