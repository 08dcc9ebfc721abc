#!/usr/bin/env node
/** Keeps the compiled code of the first start, so that every later one is quicker; then runs the service. */
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

// Not in the shared temporary directory, where another user could have placed code under that name.
enableCompileCache(fileURLToPath(new URL("../node_modules/.cache/compiled", import.meta.url)));
const { run } = await import("./server/run.ts");
await run(process.env);
