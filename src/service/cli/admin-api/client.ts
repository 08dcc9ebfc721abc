/** Creates a client of the admin API, with the address and the credential from the options and the environment. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContext, type ConnectionOptions as TlsOptions } from "node:tls";
import { type Client, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { SessionAdminService } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SignalsAdminService } from "../../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { errorCode, errorMessage } from "../../../platform/files/error-code.ts";
import { valueOfFiles } from "../../../platform/files/file-value.ts";
import { baseUrl, readCommandLine } from "../../config/command-line.ts";
import type { Environment } from "../../config/reader.ts";
import { CommandError, usageError } from "../context.ts";
import { type AdminCredential, readCredential } from "./credential.ts";
import { callFailure } from "./failure.ts";
import { createKeySetFetch } from "./key-set-fetch.ts";
import type { ConnectionOptions } from "./options.ts";

/** How long a call may take, in ms, if it has no other limit. Streams have no limit. */
const CALL_TIMEOUT_MS = 30_000;

export type AdminApi = {
  readonly url: string;
  /** Unary calls of this client throw CommandError with a message and an exit code. Its streams throw the errors of Connect. */
  readonly client: Client<typeof SessionAdminService>;
  readonly signals: Client<typeof SignalsAdminService>;
  /** Converts the error of a stream to one that ends the command. */
  readonly failure: (error: unknown) => CommandError;
};

/** The credential is undefined if only a client certificate is given. @throws CommandError */
function connectionOf(env: Environment, options: ConnectionOptions) {
  const config = readCommandLine(env);
  const given = options.url === undefined ? undefined : baseUrl(options.url);
  if (given?.ok === false) throw usageError(`--url ${given.reason}`);
  const url = given?.value ?? config.adminUrl ?? config.local.adminUrl;
  if (url === undefined) throw usageError("ADMIN_PORT is 0: give --url, as the service's ready line has it");
  const first = readCredential(url, options, config);
  // A file with a token is read again at each call, because tokens are rotated. Standard input can be read only once.
  const credential =
    options.tokenFile === "-"
      ? () => first
      : keepUsable(first, () => readCredential(url, options, readCommandLine(env)));
  return { url, credential, nodeOptions: tlsOptions(options) };
}

/** Returns a function that reads a credential. While its file is missing, empty or half written, the one before stays in use. */
function keepUsable(
  first: AdminCredential | undefined,
  read: () => AdminCredential | undefined,
): () => AdminCredential | undefined {
  let known = first;
  return () => {
    try {
      const found = read();
      if (found?.token !== "") known = found;
    } catch {
      // The next call reads it again.
    }
    return known;
  };
}

/** Returns the address and the credential of the admin API as options for `createVerifier`. @throws CommandError */
export function adminApiOf(env: Environment, options: ConnectionOptions) {
  const { url: adminUrl, credential, nodeOptions } = connectionOf(env, options);
  const adminToken = credential() === undefined ? {} : { adminToken: () => credential()?.token ?? "" };
  const isTls = "secureContext" in nodeOptions && adminUrl.startsWith("https:");
  return { adminUrl, nodeOptions, ...adminToken, ...(isTls && { fetch: createKeySetFetch(nodeOptions) }) };
}

export function openAdminApi(env: Environment, options: ConnectionOptions): AdminApi {
  const { url, credential, nodeOptions } = connectionOf(env, options);
  const first = credential();
  const failure = (error: unknown) => callFailure(error, url, first);
  const connect = createConnectTransport({
    baseUrl: url,
    httpVersion: "1.1",
    nodeOptions,
    interceptors: first === undefined ? [] : [bearer(() => credential()?.token ?? first.token)],
  });
  const transport: Transport = {
    ...connect,
    unary: (method, signal, timeoutMs = CALL_TIMEOUT_MS, header, message, contextValues) =>
      connect.unary(method, signal, timeoutMs, header, message, contextValues).catch((error) => {
        throw failure(error);
      }),
  };
  const client = createClient(SessionAdminService, transport);
  return { url, client, signals: createClient(SignalsAdminService, transport), failure };
}

const bearer =
  (token: () => string): Interceptor =>
  (next) =>
  (request) => {
    request.header.set("authorization", `Bearer ${token()}`);
    return next(request);
  };

/**
 * Returns the options of TLS connections. The files are read again for each connection, because certificates are replaced while a command
 * runs. While one is missing or half written, those before stay in use.
 */
function tlsOptions({ ca, cert, key }: ConnectionOptions): Pick<TlsOptions, "secureContext" | "servername"> {
  if ((cert === undefined) !== (key === undefined)) throw usageError("--cert and --key must be given together");
  const given = Object.entries({ ca, cert, key }).flatMap(([option, path]) =>
    path === undefined ? [] : [{ option, path }],
  );
  if (given.length === 0) return {};
  const paths = given.map(({ path }) => path);
  const make = (texts: readonly string[]) =>
    contextOf(Object.fromEntries(given.map(({ option }, index) => [option, texts[index]])));
  try {
    const context = valueOfFiles(paths, make);
    // Node copies the options for every connection, and so calls the getter.
    return Object.defineProperty({}, "secureContext", { enumerable: true, get: () => context.current() });
  } catch (error) {
    const unreadable = given.find(({ path }) => error instanceof Error && "path" in error && error.path === path);
    if (unreadable === undefined) throw new CommandError(errorMessage(error));
    throw new CommandError(`--${unreadable.option}: ${unreadable.path} cannot be read (${errorCode(error)})`);
  }
}

type TlsTexts = { readonly ca?: string; readonly cert?: string; readonly key?: string };

/** @throws Error that names the option of a file that cannot be used */
function contextOf({ ca, cert, key }: TlsTexts): SecureContext {
  // A context accepts a text without any certificate or key, as a file has while it is rewritten. These functions throw.
  const check = (option: string, holds: string, read: () => unknown) => {
    try {
      read();
    } catch (cause) {
      throw new Error(`--${option} holds no ${holds} (PEM)`, { cause });
    }
  };
  if (ca !== undefined) check("ca", "certificate", () => new X509Certificate(ca));
  if (cert !== undefined) check("cert", "certificate", () => new X509Certificate(cert));
  if (key !== undefined) check("key", "private key without a passphrase", () => createPrivateKey(key));
  return createSecureContext({ ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) });
}
