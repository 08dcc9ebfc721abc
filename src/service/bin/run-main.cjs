"use strict";
// Node 22 reports at every start that its SQLite is experimental; the tests of this package run on it.
const { emitWarning } = process;
process.emitWarning = (warning, ...more) => {
  if (!String(warning).startsWith("SQLite is an experimental feature")) emitWarning.call(process, warning, ...more);
};
import("../src/service/main.js");
