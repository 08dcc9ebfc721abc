/** What the API knows of a request beyond its message: where it comes from, and which admin makes it. */
import { type ContextValues, createContextKey, createContextValues, type HandlerContext } from "@connectrpc/connect";
import type { Correlation, Requester } from "../session/audit.ts";
import type { AdminCaller, ClientCertificate } from "./admin/credential.ts";

/** What the listener knows of a request. Looked up only when it is needed. */
interface RequestSource {
  /** The origin that the request was sent to, such as `https://auth.example.com`; null when it names no host. */
  origin(): string | null;
  /** The network address of the client. */
  address(): string | undefined;
  /** The certificate that the client presented. */
  certificate(): ClientCertificate | undefined;
  /** How long the request may have waited in this process with its connection, ms; 0 where that was no long time. */
  waitMs(): number;
  /** Ids for the log. */
  correlation(): Correlation;
  /** Aborts the call and drops unread output. */
  abort(): void;
}

/** Passed through the calls as a context value, and to the use cases as the requester of what is audited. */
class RequestContext implements Requester {
  readonly source: RequestSource;
  /** The caller of an admin RPC, once it is authenticated. */
  admin: AdminCaller | undefined = undefined;

  constructor(source: RequestSource) {
    this.source = source;
  }

  address(): string | undefined {
    return this.source.address();
  }

  correlation(): Correlation {
    return this.source.correlation();
  }

  get adminName(): string | undefined {
    return this.admin?.name;
  }
}

const key = createContextKey<RequestContext | undefined>(undefined, { description: "request context" });

/** The context values of a call. */
export function contextValuesOf(source: RequestSource): ContextValues {
  return createContextValues().set(key, new RequestContext(source));
}

/** The ids of a call for the log; none for one that did not come through a listener. */
export function correlationOf(values: ContextValues | undefined): Correlation | undefined {
  return values?.get(key)?.correlation();
}

/** Throws for a call that did not come through a listener: `contextValuesOf` was not used. */
export function requestContextOf({ values }: Pick<HandlerContext, "values">): RequestContext {
  const request = values.get(key);
  // A shared default would let one request's admin be seen by another.
  if (request === undefined) throw new Error("the call has no request context");
  return request;
}
