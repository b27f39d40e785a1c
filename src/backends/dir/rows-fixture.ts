import {
  Field,
  FixedSizeList,
  Float32,
  Int32,
  Table,
  tableFromIPC,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from "apache-arrow";

export function rows(ids: readonly number[]): Uint8Array {
  const vector = new FixedSizeList(2, new Field("item", new Float32(), true));
  return tableToIPC(
    new Table({
      id: vectorFromArray(ids, new Int32()),
      name: vectorFromArray(
        ids.map((id) => `row ${id}`),
        new Utf8(),
      ),
      vector: vectorFromArray(
        ids.map((id) => [id, id]),
        vector,
      ),
    }),
    "stream",
  );
}

export const idsOf = (ipc: Uint8Array) => [...(tableFromIPC(ipc).getChild("id") ?? [])].map(Number);
