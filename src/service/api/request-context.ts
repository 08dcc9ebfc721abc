/** The facts about a request beyond its message: where it comes from, and which admin makes it. */
import { type ContextKey, type ContextValues, createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Correlation, Requester } from "../session/audit.ts";
import type { AdminCaller, ClientCertificate } from "./admin/credential.ts";

interface StreamOutput {
  /** Writes bytes. @returns false if the caller has to wait for `drained` before the next write, because the client reads too slowly */
  write(bytes: Uint8Array): boolean;
  /** Resolves when the client has caught up, or the response is over. */
  drained(): Promise<void>;
}

/** The facts that the listener knows about a request. Each is looked up when it is used. */
interface RequestSource {
  /** Returns the origin that the request was sent to, such as `https://auth.example.com`; null if the request names no host. */
  origin(): string | null;
  address(): string | undefined;
  userAgent(): string | undefined;
  certificate(): ClientCertificate | undefined;
  /** Returns how long the request and its connection may have waited in this process, in ms; 0 if that was not long. */
  waitMs(): number;
  correlation(): Correlation;
  /** Returns an output for messages of a stream, once Connect has sent the first; undefined if the connection allows no direct writes. */
  output(): StreamOutput | undefined;
  /** Notes that the request had no authentic credential ("fruitless", listener/fruitless.ts), whatever the status of its response. */
  noteFruitless(): void;
  /** Aborts the call and drops unread output. */
  abort(): void;
}

/** The context of a request. The functions of the domain take it as their `Requester`: who makes the request, for the audit log. */
class RequestContext implements Requester {
  readonly source: RequestSource;
  /** The caller of an admin RPC, once it is authenticated. */
  admin: AdminCaller | undefined;
  /** What a call of the public API has presented, once it is authenticated (public/credentials.ts). */
  credential: { readonly ok: true } | undefined;
  /**
   * Whether the message of the call is being read. Connect raises errors of a message with the same codes as errors of the service. An error
   * that is raised after the gates and before the first interceptor is an error of the message, because only the message is read in
   * between. The messages of a stream are read by the handler itself.
   */
  isReading = false;

  constructor(source: RequestSource) {
    this.source = source;
  }

  address(): string | undefined {
    return this.source.address();
  }

  userAgent(): string | undefined {
    return this.source.userAgent();
  }

  correlation(): Correlation {
    return this.source.correlation();
  }

  get adminName(): string | undefined {
    return this.admin?.name;
  }
}

const key = createContextKey<RequestContext | undefined>(undefined, { description: "request context" });

/** The context values of one call: about five, for which a list is faster than a map. connect-es would create three functions per call. */
class CallValues implements ContextValues {
  readonly #ids: symbol[] = [];
  readonly #values: unknown[] = [];

  get<T>({ id, defaultValue }: ContextKey<T>): T {
    const at = this.#ids.indexOf(id);
    return at < 0 ? defaultValue : (this.#values[at] as T);
  }

  set<T>({ id }: ContextKey<T>, value: T): this {
    const at = this.#ids.indexOf(id);
    if (at >= 0) this.#values[at] = value;
    else {
      this.#ids.push(id);
      this.#values.push(value);
    }
    return this;
  }

  delete({ id }: ContextKey<unknown>): this {
    const at = this.#ids.indexOf(id);
    if (at >= 0) {
      this.#ids.splice(at, 1);
      this.#values.splice(at, 1);
    }
    return this;
  }
}

export function contextValuesOf(source: RequestSource): ContextValues {
  return new CallValues().set(key, new RequestContext(source));
}

/** Returns the context of a request; undefined if it did not come through a listener. */
export function contextOf(values: ContextValues | undefined): RequestContext | undefined {
  return values?.get(key);
}

/** @throws Error if a call did not come through a listener, which uses `contextValuesOf` */
export function requestContextOf({ values }: Pick<HandlerContext, "values">): RequestContext {
  const request = values.get(key);
  // A request context has no shared default, because one request would then see the admin of another.
  if (request === undefined) throw new Error("the call has no request context");
  return request;
}
