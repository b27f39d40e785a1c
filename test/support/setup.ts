import { configureGlobal } from "fast-check";
import { seedOf } from "./seed.ts";
import "./program-hooks.ts";

configureGlobal({ seed: seedOf("TEST_SEED") });
