import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { successStatus } from "../../../src/connect-http-routes/index.ts";
import { NestedSchema, RichService } from "../gen/rich/v1/rich_pb.ts";

const encoder = new TextEncoder();

/** A service that echoes requests. Its method `Misbehave` does what the field `how` demands. */
export function richRoutes(router: ConnectRouter): void {
  router.service(RichService, {
    echo: (request) => request,
    echoPath: (request) => request,
    pick: (request) => request,
    update: (request) => request,
    upload: (request) => request,
    uploadPart: (request) => request,
    nothing: () => ({}),
    async *count({ to, failAfter }, context) {
      for (let number = 1; number <= to; number++) {
        if (failAfter === number - 1) throw new ConnectError("enough", Code.DataLoss);
        if (context.signal.aborted) return;
        yield { number };
      }
    },
    async *download({ to, failAfter }) {
      for (let number = 1; number <= to; number++) {
        if (failAfter === number - 1) throw new ConnectError("enough", Code.DataLoss);
        yield { contentType: "text/csv", data: encoder.encode(`${number}\n`) };
      }
    },
    misbehave({ how }, context) {
      context.responseHeader.append("set-cookie", "a=1; Path=/");
      context.responseHeader.append("set-cookie", "b=2; Path=/");
      context.responseHeader.set("x-handler", "yes");
      switch (how) {
        case "bug":
          throw new Error("secret");
        case "detail":
          throw new ConnectError("look inside", Code.FailedPrecondition, { "x-metadata": "m" }, [
            { desc: NestedSchema, value: { name: "why" } },
          ]);
        case "unknown detail": {
          const error = new ConnectError("look inside", Code.FailedPrecondition);
          error.details.push({ type: "unknown.Detail", value: new Uint8Array([1, 2, 3]) });
          return Promise.reject(error);
        }
        case "created":
          context.values.set(successStatus, 201);
          return {};
        case "elsewhere":
          context.values.set(successStatus, 303);
          context.responseHeader.set("location", "/v1/echo");
          return {};
        case "no success":
          context.values.set(successStatus, 500);
          return {};
        case "no content":
          context.values.set(successStatus, 204);
          return {};
        case "trailer":
          context.responseTrailer.set("x-late", "t");
          return {};
        default:
          throw new ConnectError(how, Code.Aborted);
      }
    },
  });
}
