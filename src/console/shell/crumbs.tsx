import { hrefOf } from "./route.ts";

/** Links to the namespaces around an object. */
export function Crumbs({ id }: { id: readonly string[] }) {
  return (
    <nav class="crumbs" aria-label="Where it is">
      <a href={hrefOf({ page: "namespace", id: [] })}>Root</a>
      {id.slice(0, -1).map((name, at) => (
        <a key={name} href={hrefOf({ page: "namespace", id: id.slice(0, at + 1) })}>
          {name}
        </a>
      ))}
    </nav>
  );
}
