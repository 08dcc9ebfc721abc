import {
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  type Message,
  type MessageShape,
  type Registry,
} from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { isJsonObject } from "../codec/json-values.ts";

/** Makes an error from the body of a failed response. If it returns undefined, the default applies. */
export type ErrorDecoder = (body: JsonValue, status: number) => ConnectError | undefined;

/** Maps HTTP statuses to codes, for responses that are not from the service, such as those of a proxy. */
const CODES: Readonly<Record<number, Code>> = {
  400: Code.InvalidArgument,
  401: Code.Unauthenticated,
  403: Code.PermissionDenied,
  404: Code.NotFound,
  405: Code.Unimplemented,
  408: Code.DeadlineExceeded,
  409: Code.Aborted,
  412: Code.FailedPrecondition,
  413: Code.ResourceExhausted,
  429: Code.ResourceExhausted,
  499: Code.Canceled,
  501: Code.Unimplemented,
  502: Code.Unavailable,
  503: Code.Unavailable,
  504: Code.DeadlineExceeded,
};

/** Returns the error of a response whose status is not a success. */
export function errorOfResponse(
  text: string,
  { status, headers }: Pick<Response, "status" | "headers">,
  decode: ErrorDecoder | undefined,
  registry: Registry | undefined,
): ConnectError {
  let error: ConnectError | undefined;
  try {
    const body = JSON.parse(text) as JsonValue;
    error = decode?.(body, status) ?? errorOfStatus(body, registry);
  } catch {
    // The body is not JSON, so the status alone decides.
  }
  error ??= new ConnectError(`HTTP status ${status}`, CODES[status] ?? Code.Unknown);
  for (const [name, value] of headers) error.metadata.append(name, value);
  return error;
}

/** Returns the error of a google.rpc.Status in JSON, or of problem details with a code (RFC 9457); undefined if the value is neither. */
export function errorOfStatus(json: JsonValue, registry: Registry | undefined): ConnectError | undefined {
  if (!isJsonObject(json)) return undefined;
  const { code: sent, message, detail = message, details } = json;
  const problem = typeof sent === "string" ? json : undefined;
  // Problem details have the name of the code, such as `not_found`.
  const name = String(sent).replace(/(?:^|_)./g, (start) => start.slice(-1).toUpperCase());
  const code: unknown = problem === undefined ? sent : Code[name as keyof typeof Code];
  if (typeof code !== "number" || Code[code] === undefined) return undefined;
  const text = typeof detail === "string" ? detail : "";
  return new RestError(text, code, Array.isArray(details) ? details.filter(isJsonObject) : [], registry, problem);
}

type Detail = ConnectError["details"][number];

/** An error of the service. Its details arrive as JSON. Only a client that knows their types can encode them as bytes. */
export class RestError extends ConnectError {
  /** The JSON of the details whose types `registry` lacks. */
  readonly #unknown = new Map<Detail, JsonObject>();

  /** The body of the response, if it was problem details (RFC 9457): `type`, `title`, `errors` and others. */
  readonly problem: JsonObject | undefined;

  constructor(
    message: string,
    code: Code,
    details: readonly JsonObject[],
    registry: Registry | undefined,
    problem: JsonObject | undefined,
  ) {
    super(message, code);
    this.problem = problem;
    for (const json of details) {
      const { "@type": url } = json;
      if (typeof url !== "string") continue;
      const known = registry && bytesOf(json, registry);
      const value = known ?? sentBytesOf(json) ?? new Uint8Array();
      const detail = { type: url.slice(url.lastIndexOf("/") + 1), value, debug: json };
      this.details.push(detail);
      if (known === undefined) this.#unknown.set(detail, json);
    }
  }

  /** The JSON of the details whose bytes are not known, because the client's `registry` lacks their types. In `details` they are empty. */
  get undecoded(): readonly JsonObject[] {
    return [...this.#unknown.values()].filter((json) => sentBytesOf(json) === undefined);
  }

  /**
   * Returns the details of one type, or of all types of a registry, even if the client's own registry lacks these types. A detail whose
   * JSON does not fit its type is left out.
   */
  override findDetails<Desc extends DescMessage>(desc: Desc): MessageShape<Desc>[];
  override findDetails(registry: Registry): Message[];
  override findDetails(wanted: DescMessage | Registry): Message[] {
    // A whole registry would enlarge bundles. To read an Any, its type is enough.
    const alone = { getMessage: (name: string) => (name === (wanted as DescMessage).typeName ? wanted : undefined) };
    const registry = wanted.kind === "message" ? (alone as Registry) : wanted;
    const known = new ConnectError("", this.code);
    known.details = this.details.flatMap((detail) => {
      const json = this.#unknown.get(detail);
      if (json === undefined || "desc" in detail) return [detail];
      const value = bytesOf(json, registry) ?? sentBytesOf(json);
      return value === undefined ? [] : [{ ...detail, value }];
    });
    return known.findDetails(registry);
  }
}

/** Returns the bytes of a google.protobuf.Any in JSON; undefined if its type is unknown, or the JSON does not fit it. */
function bytesOf(json: JsonObject, registry: Registry): Uint8Array | undefined {
  try {
    return fromJson(AnySchema, json, { registry }).value;
  } catch {
    return undefined;
  }
}

/** Returns the bytes that a server sends in base64 if it does not know the type. */
function sentBytesOf({ "@type": _, ...others }: JsonObject): Uint8Array | undefined {
  const { value, ...more } = others;
  if (typeof value !== "string" || Object.keys(more).length > 0) return undefined;
  try {
    return base64Decode(value);
  } catch {
    return undefined;
  }
}
