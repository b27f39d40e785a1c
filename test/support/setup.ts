import { configureGlobal } from "fast-check";
import { seedOf } from "./seed.ts";
import "./joined-programs.ts";

configureGlobal({ seed: seedOf("TEST_SEED") });
