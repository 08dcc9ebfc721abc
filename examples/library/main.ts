/** A Connect service, served as JSON routes and as RPCs on one port. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { clone, create } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter, type Interceptor } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { createHttpHandler, successStatus } from "connect-http-routes";
import { LibraryServiceRoutes } from "./gen/library/v1/library_http.js";
import { type Book, BookSchema, LibraryService } from "./gen/library/v1/library_pb.js";

const books = new Map<string, Book>();

function find(name: string): Book {
  const book = books.get(name);
  if (book === undefined) throw new ConnectError(`there is no book ${name}`, Code.NotFound);
  return book;
}

const onShelf = (parent: string) => [...books.values()].filter(({ name }) => name.startsWith(`${parent}/books/`));

const routes = (router: ConnectRouter) =>
  void router.service(LibraryService, {
    getBook: ({ name }) => find(name),
    listBooks: ({ parent, pageSize }) => ({ books: onShelf(parent).slice(0, pageSize || undefined) }),
    createBook({ parent, book }, context) {
      const name = `${parent}/books/${books.size + 1}`;
      const created = create(BookSchema, { name, title: book?.title, pages: book?.pages });
      books.set(name, created);
      context.values.set(successStatus, 201);
      context.responseHeader.set("location", `/v1/${name}`);
      return created;
    },
    updateBook({ book, updateMask }) {
      const changed = clone(BookSchema, find(book?.name ?? ""));
      for (const path of updateMask?.paths ?? []) {
        if (path === "title") changed.title = book?.title ?? "";
        if (path === "pages") changed.pages = book?.pages ?? 0;
      }
      books.set(changed.name, changed);
      return changed;
    },
    async *watchBooks({ parent }) {
      yield* onShelf(parent);
    },
  });

/** Adds the duration to the response. The interceptor runs for JSON routes and RPCs alike. */
const timing: Interceptor = (next) => async (request) => {
  const startMs = performance.now();
  const response = await next(request);
  response.header.set("server-timing", `rpc;dur=${(performance.now() - startMs).toFixed(1)}`);
  return response;
};

const options = { routes, interceptors: [timing] };
const handler = createHttpHandler({
  ...options,
  tables: [LibraryServiceRoutes],
  fallback: connectNodeAdapter(options), // This adapter serves all other requests, such as Connect and gRPC-Web.
});

const server = createServer(handler).listen(Number(process.env.PORT ?? 8090), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
