/** Translates errors that Connect raises before any interceptor runs, as for a malformed message, to those of docs/reference/errors.md. */
import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter, type ContextValues } from "@connectrpc/connect";
import {
  encodeEnvelope,
  readAllBytes,
  type UniversalHandler,
  type UniversalServerResponse,
} from "@connectrpc/connect/protocol";
import {
  codeToHttpStatus,
  endStreamFlag,
  endStreamFromJson,
  endStreamToJson,
  errorFromJsonBytes,
  errorToJsonBytes,
} from "@connectrpc/connect/protocol-connect";
import { findTrailerError, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerParse, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import type { FailureReports } from "../outcomes.ts";
import { contextOf } from "../request-context.ts";
import { CallError } from "./call-error.ts";
import { errorCodeOf, faultOfCaller, toConnectError } from "./connect-errors.ts";
import { failedCall, only, refusedCall } from "./refused-calls.ts";

type Translate = (error: ConnectError | undefined) => ConnectError | undefined;
type OnBug = FailureReports["onBug"];
type Body = AsyncIterable<Uint8Array>;

/**
 * Replaces an error whose text quotes half of a surrogate pair from the request. Connect throws a URIError when it percent-encodes such a
 * text for gRPC. Other protocols have JSON errors, which can contain it.
 */
const NOT_UNICODE = new CallError("the message has text that is not Unicode", Code.InvalidArgument, {}, []);

/** How many bytes precede the data of an enveloped message of Connect or gRPC: one byte of flags, and four with the length of the data. */
const ENVELOPE_HEAD = 5;

/** Makes the routes of `router` respond only with errors of docs/reference/errors.md. @param onBug receives errors that no rule covers */
export function withOurErrors(router: ConnectRouter, onBug: OnBug): ConnectRouter {
  for (const [at, handler] of router.handlers.entries()) {
    const respond: UniversalHandler = Object.assign(async (...[request]: Parameters<UniversalHandler>) => {
      const { body, contextValues } = request;
      const call = { method: handler.method, values: contextValues };
      const translate: Translate = (error) => error && toOurError(error, call, onBug);
      const isStream = typeof body === "object" && body !== null && Symbol.asyncIterator in body;
      const whole = isStream ? { ...request, body: fromCaller(body as Body) } : request;
      try {
        const response = await handler(whole);
        return refusedCall(request, response, handler) ?? (await withTranslatedError(response, translate));
      } catch (error) {
        // The caller has disconnected. The adapter sends no response for any error, and prints all errors except this one on the console.
        if (ConnectError.from(error).code === Code.Aborted) throw ConnectError.from(error);
        const type = request.header.get("content-type") ?? "";
        if (error instanceof URIError && type.startsWith("application/grpc")) {
          return failedCall(translate(NOT_UNICODE) ?? NOT_UNICODE, type);
        }
        const reported = toConnectError(error, (bug) => onBug(bug, handler.method.name, contextValues));
        return failedCall(reported, type);
      }
    }, handler);
    router.handlers[at] = respond;
  }
  return router;
}

type Raised = { readonly method: Pick<DescMethod, "name">; readonly values: ContextValues | undefined };

/** Returns the error of docs/reference/errors.md for one that Connect has raised; undefined for one that is in that list already. */
export function toOurError(error: ConnectError, { method, values }: Raised, onBug: OnBug): ConnectError | undefined {
  if (errorCodeOf(error) !== undefined) return undefined;
  const isOfMessage = contextOf(values)?.isReading === true;
  return isOfMessage ? faultOfCaller(error) : toConnectError(error, (bug) => onBug(bug, method.name, values));
}

/** Makes reading fail with Code.Canceled if the caller disconnects within the body. Connect would report an internal error. */
function fromCaller(body: Body): Body {
  return {
    [Symbol.asyncIterator]() {
      const pieces = body[Symbol.asyncIterator]();
      return {
        next: () => pieces.next().catch(throwCanceled),
        return: async () => (await pieces.return?.()) ?? { done: true, value: undefined },
      };
    },
  };
}

function throwCanceled(cause: unknown): never {
  throw new ConnectError("the request body is incomplete", Code.Canceled, undefined, undefined, cause);
}

function withTranslatedError(
  response: UniversalServerResponse,
  translate: Translate,
): UniversalServerResponse | Promise<UniversalServerResponse> {
  const { body, header, trailer } = response;
  const type = header?.get("content-type") ?? "";
  if (body === undefined || header === undefined) return response;
  if (type.startsWith("application/grpc-web")) {
    return { ...response, body: mapLast(body, trailerFlag, (data) => translatedTrailer(data, translate)) };
  }
  if (type.startsWith("application/grpc"))
    return { ...response, body: withTranslatedTrailers(body, trailer, translate) };
  if (type.startsWith("application/connect+")) {
    return { ...response, body: mapLast(body, endStreamFlag, (data) => translatedEndOfStream(data, translate)) };
  }
  return response.status === 200 || header.has("content-encoding")
    ? response
    : translatedUnary(response, body, header, translate);
}

async function translatedUnary(response: UniversalServerResponse, body: Body, header: Headers, translate: Translate) {
  const bytes = await readAllBytes(body, Number.MAX_SAFE_INTEGER);
  const ours = translate(errorFromJsonBytes(bytes, undefined, new ConnectError("", Code.Unknown)));
  if (ours === undefined) return { ...response, body: only(bytes) };
  const text = errorToJsonBytes(ours, undefined);
  for (const [name, value] of ours.metadata) header.set(name, value);
  header.set("content-length", String(text.byteLength));
  return { ...response, status: codeToHttpStatus(ours.code), body: only(text) };
}

/** Translates the error in the trailers of a response at the end of its body, because the trailers are complete only then. */
async function* withTranslatedTrailers(body: Body, trailer: Headers | undefined, translate: Translate): Body {
  yield* body;
  const ours = trailer && translate(findTrailerError(trailer));
  if (trailer && ours) setTrailerStatus(trailer, ours);
}

/**
 * Changes the data of the enveloped message that has exactly these flags, which is the one with the error. A compressed one would have a
 * further flag, but errors are too short to be compressed.
 */
async function* mapLast(body: Body, flag: number, map: (data: Uint8Array) => Uint8Array | undefined): Body {
  for await (const envelope of body) {
    const data = envelope[0] === flag ? map(envelope.subarray(ENVELOPE_HEAD)) : undefined;
    yield data === undefined ? envelope : encodeEnvelope(flag, data);
  }
}

function translatedTrailer(data: Uint8Array, translate: Translate): Uint8Array | undefined {
  const trailer = trailerParse(data);
  const ours = translate(findTrailerError(trailer));
  return ours && trailerSerialize(setTrailerStatus(trailer, ours));
}

function translatedEndOfStream(data: Uint8Array, translate: Translate): Uint8Array | undefined {
  const { metadata, error } = endStreamFromJson(data);
  const ours = translate(error);
  return ours && Buffer.from(JSON.stringify(endStreamToJson(metadata, ours, undefined)));
}
