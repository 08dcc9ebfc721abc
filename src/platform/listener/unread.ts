/** Responds to bytes that are not a valid request. Node's parser has given up on the connection, and no handler runs. */
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { MAX_HEAD_BYTES } from "./limits.ts";

/** The HTTP statuses by the error code of Node's parser. Any other parser error gets 400. */
const STATUS: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** If a browser has too many cookies, it displays this text, because only its user can delete them. */
const REASONS: Readonly<Record<number, string>> = {
  431: `The head of the request is larger than ${MAX_HEAD_BYTES / 1024} KiB. Cookies are the usual cause: delete those of this site and of the domains above it.\n`,
};

/** Responds once, and closes the connection. @param hasResponse whether a part of a response has been sent already */
export function refuseUnread(error: NodeJS.ErrnoException, socket: Socket, hasResponse: boolean): void {
  if (error.code === "ECONNRESET" || !socket.writable || hasResponse) return void socket.destroy();
  const status = STATUS[error.code ?? ""] ?? 400;
  const body = REASONS[status] ?? "";
  const fields = [
    "Connection: close",
    `Content-Length: ${body.length}`,
    "Content-Type: text/plain",
    "Cache-Control: no-store",
  ];
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${fields.join("\r\n")}\r\n\r\n${body}`);
}
