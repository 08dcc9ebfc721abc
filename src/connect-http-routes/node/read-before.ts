/** Bodies that middleware has read and kept as `request.body`. */
import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import { NO_BYTES } from "../codec/bytes.ts";

let hasWarned = false;

/** Returns the error for a handler behind middleware that has consumed the body. It is logged once: clients get a 500 without a reason. */
function bodyIsLost(): Error {
  const message =
    "middleware has read the request body: mount the HTTP handler before it, or keep what it has read as request.body " +
    "(Fastify: Object.assign(request.raw, { body: request.body }))";
  if (!hasWarned) process.emitWarning(message, "HttpHandlerWarning");
  hasWarned = true;
  return new Error(message);
}

/**
 * Returns what middleware has read, as bytes.
 * @param raw whether the bytes are needed as they were sent
 * @throws Error if they are lost
 */
export function takeReadBefore(request: IncomingMessage | Http2ServerRequest, raw: boolean): Uint8Array {
  const body: unknown = "body" in request ? request.body : undefined;
  if (body instanceof Uint8Array) return body;
  // A parser of texts has replaced what is no text.
  if (typeof body === "string" && !(raw && body.includes("\ufffd"))) return Buffer.from(body);
  if (typeof body !== "string" && body !== undefined && !raw) {
    return Buffer.from(isForm(request) ? formOf(body) : JSON.stringify(body));
  }
  // The stream has ended before anybody read it, so the body was empty.
  if (!request.readableDidRead) return NO_BYTES;
  throw bodyIsLost();
}

const isForm = ({ headers }: Pick<IncomingMessage, "headers">) =>
  /^application\/x-www-form-urlencoded/i.test(headers["content-type"] ?? "");

/** Writes the fields of a parsed form as a form again. @throws Error if they are no texts */
function formOf(fields: unknown): string {
  const form = new URLSearchParams();
  const add = (name: string, value: unknown): void => {
    if (typeof value === "string") form.append(name, value);
    else if (Array.isArray(value)) for (const item of value) add(name, item);
    else if (typeof value !== "object" || value === null) throw bodyIsLost();
    // The extended parser of Express makes an object of `labels[key]`.
    else for (const [key, item] of Object.entries(value)) add(name === "" ? key : `${name}[${key}]`, item);
  };
  add("", fields);
  return form.toString();
}
