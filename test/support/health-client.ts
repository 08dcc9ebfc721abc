/** The standard health client: @grpc/grpc-js with the service that grpc-health-check publishes. */
import { credentials, makeClientConstructor, type ServiceError, status } from "@grpc/grpc-js";
import { service } from "grpc-health-check";

type Reply = { readonly status: string };
type ListReply = { readonly statuses: Readonly<Record<string, Reply>> };

export type HealthClient = {
  /** Returns the status, or the name of the gRPC code of the refusal. */
  check(service: string): Promise<string>;
  list(): Promise<Readonly<Record<string, string>>>;
  watch(service: string): HealthWatch;
  close(): void;
};

export type HealthWatch = {
  /** Returns the next status, or the name of the gRPC code when the stream has ended. */
  next(): Promise<string>;
  cancel(): void;
};

type Done<T> = (error: ServiceError | null, reply: T) => void;
type Stub = {
  check(request: object, done: Done<Reply>): void;
  list(request: object, done: Done<ListReply>): void;
  watch(request: object): AsyncIterable<Reply> & { cancel(): void; on(event: "error", listener: () => void): unknown };
  close(): void;
};

const Client = makeClientConstructor(service, "Health");
const codeOf = (error: unknown) => status[(error as ServiceError).code] ?? String(error);

export function healthClient(url: string): HealthClient {
  // Without this option, clients of the same address share a connection.
  const options = { "grpc.use_local_subchannel_pool": 1 };
  // The types of grpc-js do not have the methods of the service.
  const stub = new Client(new URL(url).host, credentials.createInsecure(), options) as unknown as Stub;
  return {
    check: (name) =>
      new Promise((resolve) =>
        stub.check({ service: name }, (error, reply) => resolve(error === null ? reply.status : codeOf(error))),
      ),
    list: () =>
      new Promise((resolve, reject) =>
        stub.list({}, (error, reply) => {
          if (error !== null) return reject(error);
          resolve(Object.fromEntries(Object.entries(reply.statuses).map(([name, one]) => [name, one.status])));
        }),
      ),
    watch(name) {
      const call = stub.watch({ service: name });
      // The stream of a cancelled call fails as well. Without this listener, the error would be unhandled.
      call.on("error", () => {});
      const statuses = call[Symbol.asyncIterator]();
      return {
        async next() {
          try {
            const { done, value } = await statuses.next();
            return done === true ? "OK" : value.status;
          } catch (error) {
            return codeOf(error);
          }
        },
        cancel: () => call.cancel(),
      };
    },
    close: () => stub.close(),
  };
}
