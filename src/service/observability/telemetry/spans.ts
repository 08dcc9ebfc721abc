/** Spans of store commands. Keys are no attributes: they may hold secrets. */
import { context, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import type { SessionStore } from "../../session/ports.ts";

const SYSTEMS = { embedded: "sqlite", redis: "redis" } as const;
/** The functions of the store that execute no command. */
const LEFT_OUT: ReadonlySet<string> = new Set(["now", "shiftMs", "onRevocation", "close"]);

type AnyVerb = (...given: unknown[]) => Promise<unknown>;

/** Wraps the store, so that each command of a recorded request has a span. @param store a plain object of functions */
export function traceStore(tracer: Tracer, store: SessionStore, kind: keyof typeof SYSTEMS): SessionStore {
  const traced = (name: string, verb: AnyVerb): AnyVerb => {
    const attributes = { "db.system.name": SYSTEMS[kind], "db.operation.name": name };
    return (...given) => {
      if (trace.getSpan(context.active())?.isRecording() !== true) return verb(...given);
      const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes });
      const result = verb(...given);
      result.then(
        () => span.end(),
        (error: unknown) => fail(span, error),
      );
      return result;
    };
  };
  const verbs: [string, AnyVerb][] = Object.entries(store);
  for (const verb of verbs) if (!LEFT_OUT.has(verb[0])) verb[1] = traced(...verb);
  return { ...store, ...Object.fromEntries(verbs) };
}

function fail(span: Span, error: unknown): void {
  span.setAttribute("error.type", error instanceof Error ? error.name : "unknown");
  span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}
