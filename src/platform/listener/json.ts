/** Reads and sends JSON for the few handlers that are not RPCs. */
import { type HttpRequest, type HttpResponse, respond } from "./handler.ts";

/** Returns undefined if the body is longer than `maxBytes`, or if the client has disconnected. */
export async function readBody(request: HttpRequest, maxBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > maxBytes) return undefined;
      chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks).toString();
}

/** Sends a value as JSON that no cache may keep. */
export function sendJson(
  response: HttpResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string | string[]>> = {},
): void {
  const body = JSON.stringify(value);
  const fields = {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
    ...headers,
  };
  respond(response, status, fields, body);
}
