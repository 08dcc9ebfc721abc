#!/usr/bin/env node
"use strict";
// This file uses only old syntax, so that any version of Node can print which version is needed.
var needed = require("../package.json").engines.node.replace(/^\D*/, "");

function isOlder(version, than) {
  var a = version.split(".");
  var b = than.split(".");
  var i;
  for (i = 0; i < b.length; i++) {
    if (Number(a[i]) !== Number(b[i])) return Number(a[i]) < Number(b[i]);
  }
  return false;
}

if (isOlder(process.versions.node, needed)) {
  console.error(
    "session-service needs Node " +
      needed +
      " or newer; " +
      process.execPath +
      " is Node " +
      process.versions.node +
      ".",
  );
  process.exitCode = 1;
} else {
  require("./run-main.cjs");
}
