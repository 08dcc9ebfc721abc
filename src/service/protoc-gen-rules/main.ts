#!/usr/bin/env node
import { runNodeJs } from "@bufbuild/protoplugin";
import { protocGenRules } from "./plugin.ts";

runNodeJs(protocGenRules);
