/** Creates a client of the admin API, with the address and the credential from the options and the environment. */
import { readFileSync } from "node:fs";
import { type Client, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { SessionAdminService } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SignalsAdminService } from "../../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { errorCode } from "../../../platform/files/error-code.ts";
import { baseUrl, readCommandLine } from "../../config/command-line.ts";
import type { Environment } from "../../config/reader.ts";
import { CommandError, usageError } from "../context.ts";
import { type Credential, readCredential } from "./credential.ts";
import { callFailure } from "./failure.ts";
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
function keepUsable(first: Credential | undefined, read: () => Credential | undefined): () => Credential | undefined {
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
  return { adminUrl, nodeOptions, ...adminToken };
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

function tlsOptions({ ca, cert, key }: ConnectionOptions) {
  if ((cert === undefined) !== (key === undefined)) throw usageError("--cert and --key must be given together");
  const pem = (option: string, path: string | undefined) => {
    try {
      return path === undefined ? {} : { [option]: readFileSync(path) };
    } catch (error) {
      throw new CommandError(`--${option}: ${path} cannot be read (${errorCode(error)})`);
    }
  };
  return { ...pem("ca", ca), ...pem("cert", cert), ...pem("key", key) };
}
