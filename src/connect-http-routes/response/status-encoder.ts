import {
  create,
  createRegistry,
  type DescMessage,
  fromBinary,
  type JsonObject,
  type Message,
  type Registry,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { base64Encode } from "@bufbuild/protobuf/wire";
import { type Any, AnySchema, anyPack } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import { file_google_rpc_error_details } from "../../../gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../../gen/google/rpc/status_pb.ts";
import type { FailureEncoder } from "./failure.ts";

/** The types that servers of every language attach to errors, but that the descriptors of a service rarely contain. */
const STANDARD_DETAILS = createRegistry(file_google_rpc_error_details);

type Detail = ConnectError["details"][number];

/** The default encoder: `google.rpc.Status` as JSON. In a stream it is wrapped: `{"error": status}`. */
export const statusEncoder: FailureEncoder = ({ error }, { inBand, registry }) => {
  const details = error.details.map((detail) => detailJson(detail, registry));
  const status = { code: error.code, message: error.rawMessage, details };
  const message = () => create(StatusSchema, { ...status, details: error.details.map(anyOf) });
  return { body: inBand ? { error: status } : status, message: () => ({ type: StatusSchema, value: message() }) };
};

function anyOf(detail: Detail): Any {
  if ("desc" in detail) return anyPack(detail.desc, create(detail.desc, detail.value));
  return create(AnySchema, { typeUrl: `type.googleapis.com/${detail.type}`, value: detail.value });
}

/**
 * Returns the JSON of a detail as `google.protobuf.Any`. If its type, or that of an Any in it, is neither in the registry nor in
 * google/rpc/error_details.proto, the result keeps the type and the bytes: `{"@type": …, "value": base64}`.
 */
export function detailJson(detail: Detail, registry: Registry | undefined): JsonObject {
  if ("desc" in detail) {
    const message = create(detail.desc, detail.value);
    return messageJson(detail.desc, message, registry) ?? opaque(detail.desc.typeName, bytesOf(detail.desc, message));
  }
  const type = registry?.getMessage(detail.type) ?? STANDARD_DETAILS.getMessage(detail.type);
  return (type && wireJson(type, detail.value, registry)) ?? opaque(detail.type, detail.value);
}

function wireJson(type: DescMessage, bytes: Uint8Array, registry: Registry | undefined): JsonObject | undefined {
  try {
    return messageJson(type, fromBinary(type, bytes), registry);
  } catch {
    return undefined;
  }
}

/** Returns undefined if the message has no JSON form. */
function messageJson(type: DescMessage, message: Message, registry: Registry | undefined): JsonObject | undefined {
  const types = registry === undefined ? createRegistry(type) : createRegistry(type, registry);
  try {
    return toJson(AnySchema, anyPack(type, message), { registry: types }) as JsonObject;
  } catch {
    return undefined;
  }
}

/** Returns no bytes for values that the message type does not allow. */
function bytesOf(type: DescMessage, message: Message): Uint8Array {
  try {
    return toBinary(type, message);
  } catch {
    return new Uint8Array();
  }
}

function opaque(typeName: string, bytes: Uint8Array): JsonObject {
  return { "@type": `type.googleapis.com/${typeName}`, value: base64Encode(bytes) };
}
