/** A uniform caller for each listener: it makes the same call, with the same headers, through every protocol that the service speaks. */
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  fromJson,
  type MessageInitShape,
  type MessageShape,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { ErrorDetailSchema } from "../../gen/auth/v1/session_pb.ts";
import { type RawResponse, request } from "./raw-http.ts";
import { inTime } from "./until.ts";

/** The result of a call. Its headers include the trailers, because protocols put the same fields into either. */
export type CallResult<O extends DescMessage> =
  | { readonly ok: true; readonly message: MessageShape<O>; readonly headers: Headers }
  | {
      readonly ok: false;
      /** The stable code of the error detail, such as `E001_AUTH_FAILURE`. */
      readonly code: string | undefined;
      /** The RPC code, such as `unauthenticated`. Undefined for JSON HTTP, which has none. */
      readonly rpc: string | undefined;
      readonly text: string;
      readonly headers: Headers;
      /** Absent for JSON HTTP. */
      readonly error?: ConnectError;
    };

export type Caller = {
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    input?: MessageInitShape<I>,
    headers?: Readonly<Record<string, string>>,
  ): Promise<CallResult<O>>;
  /** Opens a stream. All protocols report failures as a ConnectError. @throws ConnectError */
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    input: MessageInitShape<I>,
    headers: Readonly<Record<string, string>>,
    signal?: AbortSignal,
  ): AsyncIterable<MessageShape<O>>;
  close(): void;
};

/** The trusted authority, and for mutual TLS also the client's certificate and key, all in PEM. */
export type ClientTls = Buffer | { readonly ca: Buffer; readonly cert: Buffer; readonly key: Buffer };

export type ProtocolClient = { readonly name: string; open(url: string, tls?: ClientTls): Caller };

const tlsOptions = (tls: ClientTls | undefined) =>
  tls === undefined ? {} : Buffer.isBuffer(tls) ? { ca: tls } : { ...tls };

function rpcName(code: Code): string {
  return (Code[code] ?? "?").replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
}

function refusal(error: unknown) {
  if (!(error instanceof ConnectError)) throw error;
  const code = error.findDetails(ErrorDetailSchema)[0]?.code;
  const { rawMessage: text, metadata: headers } = error;
  return { ok: false, code, rpc: rpcName(error.code), text, headers, error } as const;
}

/** Makes a caller from one of connect-node's transports. */
function overTransport(transport: Transport, close = () => {}): Caller {
  return {
    async call(method, input, headers) {
      try {
        const init = (input ?? {}) as MessageInitShape<typeof method.input>;
        const response = await transport.unary(method, undefined, undefined, headers, init);
        const all = new Headers(response.header);
        for (const [name, value] of response.trailer) all.append(name, value);
        return { ok: true, message: response.message, headers: all };
      } catch (error) {
        return refusal(error);
      }
    },
    async *stream(method, input, headers, signal) {
      const inputs = (async function* () {
        yield input;
      })();
      yield* (await transport.stream(method, signal, undefined, headers, inputs)).message;
    },
    close,
  };
}

/** Merges headers and trailers. A trailers-only response has the same fields in both, and the first one is used. */
function headersOf(...metadata: readonly Metadata[]): Headers {
  const headers = new Headers();
  for (const one of metadata) {
    for (const [name, values] of Object.entries(one.toJSON() as Record<string, (string | Buffer)[]>)) {
      if (headers.has(name)) continue;
      for (const value of values) headers.append(name, typeof value === "string" ? value : value.toString("base64"));
    }
  }
  return headers;
}

function metadataOf(headers: Readonly<Record<string, string>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return metadata;
}

/** Describes a method for a client without generated stubs: its path, and how its messages are encoded and decoded. */
function methodOf<I extends DescMessage, O extends DescMessage>(method: DescMethod & { input: I; output: O }) {
  return [
    `/${method.parent.typeName}/${method.name}`,
    (value: MessageShape<I>) => Buffer.from(toBinary(method.input, value)),
    (bytes: Buffer) => fromBinary(method.output, bytes),
  ] as const;
}

/** Converts a failure of grpc-js to the error that connect-node makes of the same trailers. */
function connectErrorOf(failure: ServiceError, headers: Headers): unknown {
  headers.set("grpc-status", String(failure.code));
  headers.set("grpc-message", encodeURIComponent(failure.details));
  return findTrailerError(headers);
}

/** Makes a caller with the standard gRPC client for Node. */
function overGrpcJs(url: string, tls?: ClientTls): Caller {
  // With TLS the host must be a name: this client would send an address as the server name, which RFC 6066 section 3 forbids.
  const host = new URL(url).host.replace("127.0.0.1", tls === undefined ? "127.0.0.1" : "localhost");
  const { ca, cert, key }: { ca?: Buffer; cert?: Buffer; key?: Buffer } = tlsOptions(tls);
  const channel = ca === undefined ? credentials.createInsecure() : credentials.createSsl(ca, key, cert);
  const client = new Client(host, channel);
  return {
    async *stream(method, input, headers, signal) {
      const call = client.makeServerStreamRequest(
        ...methodOf(method),
        create(method.input, input),
        metadataOf(headers),
      );
      signal?.addEventListener("abort", () => call.cancel());
      try {
        yield* call;
      } catch (error) {
        const failure = error as ServiceError;
        throw connectErrorOf(failure, headersOf(failure.metadata));
      }
    },
    call(method, input, given = {}) {
      return new Promise((resolve, reject) => {
        let initial = new Metadata();
        let failure: ServiceError | null = null;
        let message: MessageShape<typeof method.output> | undefined;
        const call = client.makeUnaryRequest(
          ...methodOf(method),
          create(method.input, input),
          metadataOf(given),
          (error, value) => {
            failure = error;
            message = value;
          },
        );
        call.on("metadata", (received: Metadata) => {
          initial = received;
        });
        call.on("status", ({ metadata: trailer }: { metadata: Metadata }) => {
          // The callback of the call may run before or after the event `status`, so the result is evaluated when both have happened.
          setImmediate(() => {
            const headers = headersOf(initial, trailer);
            if (message !== undefined) return resolve({ ok: true, message, headers });
            if (failure === null) return reject(new Error("neither a message nor an error"));
            resolve(refusal(connectErrorOf(failure, headers)));
          });
        });
      });
    },
    close: () => client.close(),
  };
}

/** The JSON routes of the contract: method, path, and the fields that are not in the body. */
const JSON_ROUTES: Readonly<Record<string, (fields: Record<string, unknown>) => [method: string, path: string]>> = {
  Refresh: () => ["POST", "/v1/auth/refresh"],
  Logout: () => ["DELETE", "/v1/auth/logout"],
  LogoutByCookie: (fields) => ["POST", withQuery("/v1/auth/logout", fields)],
  ListSessions: (fields) => ["GET", withQuery("/v1/auth/sessions", fields)],
  RevokeSession: ({ sessionId }) => ["DELETE", `/v1/auth/sessions/${encodeURIComponent(String(sessionId))}`],
  RevokeOtherSessions: () => ["POST", "/v1/auth/sessions:revokeOthers"],
};

function withQuery(path: string, fields: Record<string, unknown>): string {
  const query = new URLSearchParams(Object.entries(fields).map(([name, value]) => [name, String(value)]));
  return query.size > 0 ? `${path}?${query}` : path;
}

function overJson(url: string, tls?: ClientTls): Caller {
  return {
    async call(method, input, headers) {
      const fields = toJson(method.input, create(method.input, input)) as Record<string, unknown>;
      const [verb, path] = JSON_ROUTES[method.name]?.(fields) ?? [];
      if (verb === undefined || path === undefined) throw new Error(`${method.name} has no JSON route`);
      const body = verb === "GET" ? undefined : "{}";
      const type = body === undefined ? {} : { "content-type": "application/json" };
      const response = await request(url, {
        method: verb,
        path,
        headers: { ...type, ...headers },
        body,
        ...tlsOptions(tls),
      });
      return readJson(method, response);
    },
    stream(method) {
      throw new Error(`${method.name} has no JSON route`);
    },
    close() {},
  };
}

function readJson<O extends DescMessage>(method: { readonly output: O }, response: RawResponse): CallResult<O> {
  const json = JSON.parse(response.body);
  if (response.status === 200) return { ok: true, message: fromJson(method.output, json), headers: response.headers };
  const { code, message } = json.error as { code: string; message: string };
  return { ok: false, code, rpc: undefined, text: message, headers: response.headers };
}

/** Gives the calls and the messages of streams the limit that all waits of tests have. */
const withLimit = ({ name, open }: ProtocolClient): ProtocolClient => ({
  name,
  open(url, tls) {
    const caller = open(url, tls);
    return {
      call: (method, ...rest) => inTime(`${method.name} by ${name}`, caller.call(method, ...rest)),
      async *stream(method, ...rest) {
        const messages = caller.stream(method, ...rest)[Symbol.asyncIterator]();
        try {
          for (;;) {
            const { done, value } = await inTime(`a message of ${method.name} by ${name}`, messages.next());
            if (done) return;
            yield value;
          }
        } finally {
          // It is not awaited: a stream that delivers nothing ends only when its client is closed.
          void messages.return?.().catch(() => undefined);
        }
      },
      close: () => caller.close(),
    };
  },
});

const RPC_CLIENTS: readonly ProtocolClient[] = [
  {
    name: "Connect JSON",
    open: (baseUrl, tls) =>
      overTransport(
        createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false, nodeOptions: tlsOptions(tls) }),
      ),
  },
  {
    name: "Connect binary",
    open: (baseUrl, tls) =>
      overTransport(
        createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: true, nodeOptions: tlsOptions(tls) }),
      ),
  },
  {
    name: "gRPC-Web",
    open: (baseUrl, tls) =>
      overTransport(createGrpcWebTransport({ baseUrl, httpVersion: "1.1", nodeOptions: tlsOptions(tls) })),
  },
  {
    name: "gRPC by connect-node",
    open(baseUrl, tls) {
      const sessionManager = new Http2SessionManager(baseUrl, {}, tlsOptions(tls));
      return overTransport(createGrpcTransport({ baseUrl, sessionManager }), () => sessionManager.abort());
    },
  },
  { name: "gRPC by grpc-js", open: overGrpcJs },
];

/** The protocols of every listener that speaks RPC. */
export const RPC_PROTOCOLS: readonly ProtocolClient[] = RPC_CLIENTS.map(withLimit);

/** The protocols of every public listener. */
export const PUBLIC_PROTOCOLS: readonly ProtocolClient[] = [...RPC_PROTOCOLS, { name: "JSON HTTP", open: overJson }];
