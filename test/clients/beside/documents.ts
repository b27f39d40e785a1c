import { embedding } from "@lancedb/lancedb";
import { Table as ArrowTable, Field, Float32, Int64, Schema, Utf8, vectorFromArray } from "apache-arrow";
import type { Kind } from "./beside.ts";
import { idsOf, t } from "./fruit.ts";

/** Keeps JSON in a column. */
const json: Kind = async (both) => {
  const schema = new Schema([
    new Field("id", new Int64(), true),
    new Field("doc", new Utf8(), true, new Map([["ARROW:extension:name", "arrow.json"]])),
  ]);
  const documents = (...ids: readonly number[]) =>
    new ArrowTable(schema, {
      id: vectorFromArray(ids.map(BigInt), new Int64()),
      doc: vectorFromArray(
        ids.map((id) => `{"n": ${id}, "deep": {"s": "t${id}"}}`),
        new Utf8(),
      ),
    });
  await both.same("createTable", async (db) => (await db.createTable("t", documents(1, 2))).countRows());
  await both.same("add", async (db) => (await t(db)).add(documents(3)));
  await both.same("upsert", async (db) =>
    (await t(db)).mergeInsert("id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(documents(3, 4)),
  );
  await both.same("update", async (db) =>
    (await t(db)).update({ where: "id = 1", values: { doc: '{"n": 100}' } }),
  );
  await both.same("filter", async (db) =>
    idsOf(await (await t(db)).query().where("json_get_int(doc, 'n') > 2").toArray()).sort(),
  );
  await both.same("rows", async (db) =>
    (await (await t(db)).query().toArray()).map(({ id, doc }) => `${id} ${doc}`).sort(),
  );
};

class Letters extends embedding.TextEmbeddingFunction {
  override ndims() {
    return 2;
  }
  override embeddingDataType() {
    return new Float32();
  }
  override async generateEmbeddings(texts: string[]) {
    return texts.map((text) => [text.length, text.charCodeAt(0)]);
  }
}

/** Computes vectors of texts in the client. */
const embeddings: Kind = async (both) => {
  const registry = embedding.getRegistry();
  if (registry.get("beside-letters") === undefined) embedding.register("beside-letters")(Letters);
  const letters = new Letters();
  const schema = embedding.LanceSchema({
    text: letters.sourceField(),
    vector: letters.vectorField(),
  });
  await both.same("createTable", async (db) => (await db.createEmptyTable("t", schema)).schema());
  await both.same("add", async (db) =>
    (await t(db)).add([{ text: "apple" }, { text: "plum" }, { text: "pear" }]),
  );
  await both.same("rows", async (db) => (await t(db)).query().toArrow());
  await both.same("search by text", async (db) => (await t(db)).search("plums").limit(2).toArrow());
};

export const DOCUMENTS: Readonly<Record<string, Kind>> = { json, embeddings };
