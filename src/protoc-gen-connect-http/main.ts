#!/usr/bin/env node
import { runNodeJs } from "@bufbuild/protoplugin";
import { protocGenHttp } from "./plugin.ts";

runNodeJs(protocGenHttp);
