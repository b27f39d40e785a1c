// Loaded before a program that another process of this project starts, and that ends with it.
import { CALLER_GONE, followCaller } from "../bin/follow-caller.js";

followCaller(() => process.kill(process.pid, CALLER_GONE));
