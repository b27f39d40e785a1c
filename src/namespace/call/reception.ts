import type { Principal } from "./principal.ts";

/** Result of checking a caller by headers and connection, before the message of its call is read. */
export type Reception = ProvedEarly | RefusedEarly;

/** A caller who is known. */
interface ProvedEarly {
  readonly principal: Principal;
  /** The authenticator that has proved it. */
  readonly by: object;
  /** Time of the proof, in milliseconds of `performance.now()`. */
  readonly at: number;
}

/** The end of a call that no message can change. Its message stays unread; the pipeline gets an empty one. */
interface RefusedEarly {
  readonly refusal: unknown;
  /** Whether the caller has brought a credential, so that its address may be guessing. */
  readonly isGuess: boolean;
}

/** Whether a call is refused whatever its message has. */
export function isRefused(reception: Reception | undefined): reception is RefusedEarly {
  return reception !== undefined && "refusal" in reception;
}
