"use strict";
const { join } = require("node:path");
const { createCachedLoad } = require("../src/platform/runtime/code-cache.cjs");

// Node 22 reports at every start that its SQLite is experimental; the tests of this package run on it.
const { emitWarning } = process;
process.emitWarning = (warning, ...more) => {
  if (!String(warning).startsWith("SQLite is an experimental feature")) emitWarning.call(process, warning, ...more);
};

// The code is inside the package, as is the directory of Node's own cache.
createCachedLoad(join(__dirname, "../node_modules/.cache/code"))(join(__dirname, "../src/service/main.cjs"));
