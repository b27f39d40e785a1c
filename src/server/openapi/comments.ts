import type { DescField, DescMessage, DescMethod, DescService } from "@bufbuild/protobuf";
import { COMMENTS } from "../../gen/lance/comments.ts";

type Part = DescService | DescMethod | DescMessage | DescField;

/** Returns the comment of the contract about a part of it, as a member of an object, which is empty without one. */
export function described(part: Part): { readonly description?: string } {
  const description = commentOf(part);
  return description === undefined ? {} : { description };
}

/** Returns the comment of the contract about a part of it. */
export function commentOf(part: Part): string | undefined {
  return COMMENTS["typeName" in part ? part.typeName : `${part.parent.typeName}.${part.name}`];
}
