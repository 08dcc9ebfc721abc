import type { DescMethod } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import type { NodeHandler, NodeRequest, ResponseInfo } from "connect-http-routes";
import { createLineLimit } from "../platform/log/line-limit.ts";

type Line = Readonly<Record<string, unknown>>;

/** Writes one JSON object. */
export type WriteLog = (line: Line) => void;

/** Writes the line of a request. @param line called if the limit allows it, because a line takes longer to collect than to suppress */
type WriteRequest = (status: number, line: () => Line) => void;

/** A log with a limited rate of lines, because a client that can cause one line can cause millions of lines. */
export interface BudgetedLog {
  readonly write: WriteLog;
  readonly writeRequest: WriteRequest;
  /** Reports how many lines were suppressed, and ends. */
  end(): void;
}

/** How often suppressed lines are reported, in milliseconds, if no later line of their kind has reported them. */
const REPORT_INTERVAL_MS = 10_000;
const MAX_TEXT_LENGTH = 1_024;

/** @param requestsPerSecond how many requests of each class of status are logged in a second; the limit of other events is ten */
export function withBudget(write: WriteLog, requestsPerSecond: number, clock = Date.now): BudgetedLog {
  const events = createLineLimit(clock);
  const requests = createLineLimit(clock, requestsPerSecond);
  const report = () => {
    for (const limit of [requests, events]) {
      for (const { kind, lines } of limit.takeSuppressed()) write({ event: "log lines suppressed", kind, lines });
    }
  };
  const timer = setInterval(report, REPORT_INTERVAL_MS).unref();
  const writeBounded = (line: Line, suppressed: number) => {
    const bounded = Object.entries(line).map(([name, value]) => [name, boundText(value)]);
    write({ ...Object.fromEntries(bounded), ...(suppressed > 0 && { suppressed }) });
  };
  return {
    write(line) {
      const event = String(line.event);
      const suppressed = events.admit(event, event);
      if (suppressed !== undefined) writeBounded(line, suppressed);
    },
    writeRequest(status, line) {
      const suppressed = requests.admit("request", `request ${Math.floor(status / 100)}xx`);
      if (suppressed !== undefined) writeBounded(line(), suppressed);
    },
    end() {
      clearInterval(timer);
      report();
    },
  };
}

function boundText(value: unknown): unknown {
  return typeof value === "string" && value.length > MAX_TEXT_LENGTH ? `${value.slice(0, MAX_TEXT_LENGTH)}…` : value;
}

/** Joins the messages of an error and its causes, because the message of a failed connection alone says little. */
export function reasonsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${reasonsOf(error.cause)}`;
}

export interface RequestLog {
  /** Logs every request that the handler serves, when its response is complete or has been cut. */
  wrap(handler: NodeHandler): NodeHandler;
  /** The hook `onResponse`, which records facts that only the handler knows. */
  note(response: ResponseInfo<NodeRequest>): void;
}

interface Note {
  readonly rpc: DescMethod | undefined;
  readonly code: Code | undefined;
}

const NO_NOTE: Note = { rpc: undefined, code: undefined };

/** A request whose response is complete or has been cut. */
interface EndedRequest extends Note {
  /** 0 if there was no response. */
  readonly status: number;
  readonly seconds: number;
}

/** Called for each request. Returns a function that is called when the response is complete or has been cut. */
export type ObserveRequest = (...exchange: Parameters<NodeHandler>) => (ended: EndedRequest) => void;

/** @param which `errors`: only requests that end with a status from 500 or without a response are logged */
export function createRequestLog(
  write: WriteRequest,
  which: "all" | "errors" | "none",
  observe?: ObserveRequest,
  traceId?: () => string | undefined,
): RequestLog {
  const notes = new WeakMap<NodeRequest, Note>();
  const noteOf = (request: NodeRequest): Note => notes.get(request) ?? NO_NOTE;
  return {
    note({ request, rpc, failure }) {
      notes.set(request, { rpc, code: failure?.error.code });
    },
    wrap: (handler) => (request, response) => {
      const start = performance.now();
      const end = observe?.(request, response);
      const { method, url = "" } = request;
      const peer = request.socket.remoteAddress;
      const trace = traceId?.();
      response.once("close", () => {
        const status = response.headersSent ? response.statusCode : 0;
        const complete = response.writableFinished;
        const durationMs = performance.now() - start;
        end?.({ ...noteOf(request), status, seconds: durationMs / 1_000 });
        if (which === "none" || (which === "errors" && complete && status < 500)) return;
        write(status, () => {
          const { rpc, code } = noteOf(request);
          return {
            event: "request",
            method,
            // The query is not logged, because it may contain secrets.
            path: url.split("?", 1)[0],
            status,
            durationMs: Math.round(durationMs * 10) / 10,
            peer,
            ...(rpc && { rpc: `${rpc.parent.typeName}/${rpc.name}` }),
            ...(code !== undefined && { code: Code[code] }),
            ...(trace !== undefined && { traceId: trace }),
            ...(!complete && { cut: true }),
          };
        });
      });
      handler(request, response);
    },
  };
}
