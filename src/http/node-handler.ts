import type { IncomingMessage } from "node:http";
import { Http2ServerRequest } from "node:http2";
import type { Exchange, ResponseStream } from "./exchange.ts";
import { FailureError, failures } from "./failure.ts";
import { HeaderMap } from "./header-map.ts";
import { endWithinBody } from "./lingering-close.ts";
import { clientGone, cut, isGone, type NodeResponse, write, writeHead } from "./node-response.ts";
import type { TranscoderOptions } from "./options.ts";
import { createTranscoder } from "./transcoder.ts";

export type NodeRequest = IncomingMessage | Http2ServerRequest;
/** What `http.createServer` and `http2.createServer` take. */
export type NodeHandler = (request: NodeRequest, response: NodeResponse) => void;

export interface HttpHandlerOptions extends TranscoderOptions<NodeRequest> {
  /** Answers what is no route of the tables. Default: a 404 as the failure encoder has it. */
  readonly fallback?: NodeHandler;
}

/** Serves the routes of tables on node:http, node:https and node:http2 (through its compatibility API). */
export function createHttpHandler(options: HttpHandlerOptions): NodeHandler {
  const transcoder = createTranscoder(options);
  return (request, response) => {
    const target = originForm(request.url ?? "/");
    const mark = target.indexOf("?");
    const found = transcoder.match(request.method ?? "GET", mark === -1 ? target : target.slice(0, mark));
    if (found.kind === "no_route" && options.fallback !== undefined) return options.fallback(request, response);
    const query = mark === -1 ? "" : target.slice(mark + 1);
    void transcoder.serve(new NodeExchange(request, response, target), found, query);
  };
}

/**
 * The path and query of a request target, raw. RFC 9112 section 3.2.2: a server must take the absolute form too. Bytes
 * that are not ASCII have no place in a target; escaped, they are what the client most likely meant.
 */
function originForm(url: string): string {
  const target = url.charCodeAt(0) === 0x2f ? url : url.replace(/^https?:\/\/[^/?#]*\/?/i, "/");
  return /^[\0-\x7f]*$/.test(target) ? target : target.replace(/[^\0-\x7f]/gu, escapeByte);
}

function escapeByte(character: string): string {
  // node reads HTTP/1 targets as Latin-1: a character is a byte.
  const code = character.charCodeAt(0);
  return code <= 0xff ? `%${code.toString(16)}` : encodeURIComponent(character.toWellFormed());
}

class NodeExchange implements Exchange<NodeRequest> {
  readonly source: NodeRequest;
  readonly target: string;
  readonly headers: HeaderMap;
  readonly method: string;
  readonly #response: NodeResponse;
  /** Whether the answer comes in the middle of a body that is too large. */
  #cutsBody = false;

  constructor(request: NodeRequest, response: NodeResponse, target: string) {
    this.source = request;
    this.target = target;
    this.method = request.method ?? "GET";
    this.headers = new HeaderMap(request.headers);
    this.#response = response;
  }

  get url(): string {
    const { source } = this;
    const secure = "encrypted" in source.socket && source.socket.encrypted === true;
    const authority = (source instanceof Http2ServerRequest ? source.authority : source.headers.host) || "localhost";
    return `${secure ? "https" : "http"}://${authority}${this.target}`;
  }

  get hasBody(): boolean {
    const { source } = this;
    // Somebody has read it before: it will not end a second time.
    if (source.readableEnded) return false;
    const length = source.headers["content-length"];
    if (length !== undefined) return length !== "0";
    if (source instanceof Http2ServerRequest) return !source.stream.endAfterHeaders;
    return source.headers["transfer-encoding"] !== undefined;
  }

  read(limit: number): Promise<Uint8Array> {
    const request = this.source;
    // Checked by the parser: digits. What is promised too large is not read at all.
    if (Number(request.headers["content-length"] ?? 0) > limit) throw this.#tooLarge(limit);
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      let length = 0;
      // The listeners stay: to take them away costs more than a call that finds the promise settled.
      request.on("data", (chunk: Buffer) => {
        length += chunk.byteLength;
        if (length <= limit) chunks.push(chunk);
        else reject(this.#tooLarge(limit));
      });
      request.on("end", () => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
      const onGone = () => {
        if (!request.readableEnded) reject(clientGone());
      };
      request.on("error", onGone);
      request.on("close", onGone);
    });
  }

  /** RFC 9110 section 15.5.14: the answer is the last thing on this connection; the rest of the body is not awaited. */
  #tooLarge(limit: number): FailureError {
    this.#cutsBody = true;
    return new FailureError(failures.tooLarge(limit));
  }

  onAbort(callback: (reason: unknown) => void): () => void {
    const response = this.#response;
    // The response's, not the request's: that one closes as soon as it is read.
    const onClose = () => {
      if (!response.writableEnded) callback(clientGone());
    };
    if (isGone(response)) onClose();
    else response.once("close", onClose);
    return () => response.off("close", onClose);
  }

  send(status: number, lines: string[], content: string | Uint8Array | undefined): void {
    const response = this.#response;
    if (isGone(response)) return;
    // A failure after the head: what is there is not whole.
    if (response.headersSent) {
      cut(response);
      return;
    }
    if (this.#cutsBody) {
      endWithinBody(this.source, response, status, lines, content);
      return;
    }
    writeHead(response, status, lines);
    if (content === undefined) response.end();
    else response.end(content);
  }

  giveUp(): void {
    const response = this.#response;
    if (response.headersSent) cut(response);
    else {
      response.statusCode = 500;
      response.end();
    }
  }

  stream(status: number, lines: string[]): ResponseStream {
    const response = this.#response;
    writeHead(response, status, lines);
    return {
      write: (piece) => write(response, piece),
      end: () => void response.end(),
      cut: () => cut(response),
    };
  }
}
