import { fromJson, type JsonValue, type Registry } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";

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

/** Returns the error of a google.rpc.Status in JSON; undefined if the value is not one. */
export function errorOfStatus(json: JsonValue, registry: Registry | undefined): ConnectError | undefined {
  if (typeof json !== "object" || json === null || Array.isArray(json)) return undefined;
  const { code, message, details } = json;
  if (typeof code !== "number" || Code[code] === undefined) return undefined;
  const error = new ConnectError(typeof message === "string" ? message : "", code);
  if (Array.isArray(details)) error.details = details.flatMap((detail) => detailOf(detail, registry));
  return error;
}

type Detail = ConnectError["details"][number];

function detailOf(json: JsonValue, registry: Registry | undefined): Detail[] {
  if (typeof json !== "object" || json === null || Array.isArray(json)) return [];
  const { "@type": url, value } = json;
  if (typeof url !== "string") return [];
  const type = url.slice(url.lastIndexOf("/") + 1);
  const debug = json;
  if (registry?.getMessage(type) !== undefined) {
    try {
      return [{ type, value: fromJson(AnySchema, json, { registry }).value, debug }];
    } catch {
      // The JSON does not fit the type: the server has another version of it, or has sent base64. Then only the bytes are read, below.
    }
  }
  // If the server does not know this type, it sends the bytes of the value in base64.
  const bytes = Object.keys(json).length === 2 && typeof value === "string" ? base64Decode(value) : new Uint8Array();
  return [{ type, value: bytes, debug }];
}
