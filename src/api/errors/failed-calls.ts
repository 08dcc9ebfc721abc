/** Makes the response to a call that has failed before it had a response, in the form of the call's protocol. */
import type { ConnectError } from "@connectrpc/connect";
import { encodeEnvelope, type UniversalServerResponse } from "@connectrpc/connect/protocol";
import {
  codeToHttpStatus,
  endStreamFlag,
  endStreamToJson,
  errorToJsonBytes,
} from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";

/** @param type the content type of the request */
export function failedCall(error: ConnectError, type: string): UniversalServerResponse {
  const response = { status: 200, header: new Headers({ "content-type": type }) };
  if (type.startsWith("application/grpc-web")) {
    return { ...response, body: only(encodeEnvelope(trailerFlag, trailerSerialize(trailerOf(error)))) };
  }
  if (type.startsWith("application/grpc"))
    return { ...response, body: only(new Uint8Array()), trailer: trailerOf(error) };
  if (type.startsWith("application/connect+")) {
    const end = Buffer.from(JSON.stringify(endStreamToJson(new Headers(), error, undefined)));
    return { ...response, body: only(encodeEnvelope(endStreamFlag, end)) };
  }
  const body = errorToJsonBytes(error, undefined);
  const header = new Headers(error.metadata);
  header.set("content-type", "application/json");
  header.set("content-length", String(body.byteLength));
  return { status: codeToHttpStatus(error.code), header, body: only(body) };
}

function trailerOf(error: ConnectError): Headers {
  return setTrailerStatus(new Headers(), error);
}

export async function* only(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}
