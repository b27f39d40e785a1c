import type { Attack } from "./attack.ts";
import { idleConnections, resets } from "./floods.ts";
import {
  columnPattern,
  costlyPattern,
  deepFilter,
  deepJson,
  fuzzyMatches,
  fuzzyTerms,
  grownText,
  largeNumbers,
  longChain,
  manyLikes,
  manyVectors,
  manyWildcards,
  nestedPattern,
  sharedFields,
} from "./requests.ts";
import { abandoned, unreadConnect, unreadGrpc, unreadRest } from "./results.ts";
import { stalledJson, stalledUploads, unfinishedConnect, unfinishedGrpc } from "./uploads.ts";

/** All attacks by their names on the command line. */
export const ATTACKS: Readonly<Record<string, Attack>> = {
  nothing: { title: "no attack", launch: async () => {} },
  "unread-rest": unreadRest,
  "unread-grpc": unreadGrpc,
  "unread-connect": unreadConnect,
  abandoned,
  "stalled-uploads": stalledUploads,
  "stalled-json": stalledJson,
  "unfinished-grpc": unfinishedGrpc,
  "unfinished-connect": unfinishedConnect,
  "idle-connections": idleConnections,
  resets,
  "shared-fields": sharedFields,
  "deep-json": deepJson,
  "long-chain": longChain,
  "deep-filter": deepFilter,
  "grown-text": grownText,
  "large-numbers": largeNumbers,
  "many-vectors": manyVectors,
  "column-pattern": columnPattern,
  "nested-pattern": nestedPattern,
  "costly-pattern": costlyPattern,
  "many-wildcards": manyWildcards,
  "many-likes": manyLikes,
  "fuzzy-terms": fuzzyTerms,
  "fuzzy-matches": fuzzyMatches,
};
