#!/usr/bin/env node
import { runNodeJs } from "@bufbuild/protoplugin";
import { protocGenOpenapi } from "./plugin.ts";

runNodeJs(protocGenOpenapi);
