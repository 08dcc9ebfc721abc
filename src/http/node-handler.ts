import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Exchange, ResponseStream } from "./exchange.ts";
import { FailureError, failures } from "./failure.ts";
import { HeaderMap } from "./header-map.ts";
import { createTranscoder, type TranscoderOptions } from "./transcoder.ts";

export type NodeRequest = IncomingMessage | Http2ServerRequest;
export type NodeResponse = ServerResponse | Http2ServerResponse;
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
    const length = source.headers["content-length"];
    if (length !== undefined) return length !== "0";
    if (source instanceof Http2ServerRequest) return !source.stream.endAfterHeaders;
    return source.headers["transfer-encoding"] !== undefined;
  }

  read(limit: number): Promise<Uint8Array> {
    const request = this.source;
    // Checked by the parser: digits. What is promised too large is not read at all.
    if (Number(request.headers["content-length"] ?? 0) > limit) throw new FailureError(failures.tooLarge(limit));
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      let length = 0;
      const settle = (act: () => void) => {
        request.off("data", onData).off("end", onEnd).off("error", onError).off("close", onClose);
        act();
      };
      const onData = (chunk: Buffer) => {
        length += chunk.byteLength;
        if (length > limit) return settle(() => reject(new FailureError(failures.tooLarge(limit))));
        chunks.push(chunk);
      };
      const onEnd = () => settle(() => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
      const onError = () => settle(() => reject(clientGone()));
      const onClose = () => settle(() => reject(clientGone()));
      request.on("data", onData).on("end", onEnd).on("error", onError).on("close", onClose);
    });
  }

  onAbort(callback: (reason: unknown) => void): () => void {
    const response = this.#response;
    // The response's, not the request's: that one closes as soon as it is read.
    const onClose = () => {
      if (!response.writableFinished) callback(clientGone());
    };
    if (response.destroyed) onClose();
    else response.once("close", onClose);
    return () => response.off("close", onClose);
  }

  send(status: number, lines: string[], content: string | Uint8Array | undefined): void {
    const response = this.#response;
    if (response.destroyed) return;
    // A failure after the head: what is there is not whole.
    if (response.headersSent) {
      cut(response);
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

/** In HTTP/1 the connection breaks; in HTTP/2 the stream is reset, and the others go on. */
function cut(response: NodeResponse): void {
  if ("stream" in response) response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  else response.destroy();
}

/** Resolves when the response takes more; rejects when it never will. */
function write(response: NodeResponse, piece: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    if (response.destroyed || response.writableEnded) return reject(clientGone());
    // The two kinds of response have overloads that do not unify.
    const flowing = "stream" in response ? response.write(piece) : response.write(piece);
    if (flowing) return resolve();
    const settle = (act: () => void) => () => {
      response.off("drain", onDrain);
      response.off("close", onClose);
      act();
    };
    const onDrain = settle(resolve);
    const onClose = settle(() => reject(clientGone()));
    response.once("drain", onDrain);
    response.once("close", onClose);
  });
}

function clientGone(): ConnectError {
  return new ConnectError("the client closed the request", Code.Canceled);
}

function writeHead(response: NodeResponse, status: number, own: string[]): void {
  // What a layer around this one varies by is true all the same; any other header of its own stays or is replaced.
  const outer = response.getHeader("vary");
  const lines = outer === undefined ? own : [...own, "vary", String(outer)];
  if (!("stream" in response)) {
    response.writeHead(status, lines);
    return;
  }
  // The compatibility API of HTTP/2 keeps one line per name of such a list: it wants them grouped.
  const grouped = new Map<string, string | string[]>();
  for (let i = 0; i < lines.length; i += 2) {
    const [name = "", value = ""] = [lines[i], lines[i + 1]];
    const other = grouped.get(name);
    grouped.set(name, other === undefined ? value : [...(Array.isArray(other) ? other : [other]), value]);
  }
  for (const [name, value] of grouped) if (!connectionHeaders.has(name)) response.setHeader(name, value);
  response.writeHead(status);
}

/** RFC 9113 section 8.2.2: these are errors in HTTP/2. */
const connectionHeaders = new Set(["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"]);
