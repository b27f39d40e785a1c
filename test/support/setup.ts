import { configureGlobal } from "fast-check";
import { seedOf } from "./seed.ts";

configureGlobal({ seed: seedOf("TEST_SEED") });
