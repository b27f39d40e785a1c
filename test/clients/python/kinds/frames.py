"""Libraries of data: polars, pandas, pydantic, and functions that embed."""

from typing import List, Optional

import pandas as pd
import polars as pl
from beside import fruit
from lancedb.embeddings import EmbeddingFunctionRegistry, TextEmbeddingFunction, register
from lancedb.pydantic import LanceModel, Vector


def t(db):
    return db.open_table("t")


def polars(both):
    """Writes and reads frames of polars."""
    frame = pl.DataFrame({"id": [1, 2], "text": ["a", "b"], "vector": [[1.0, 0.0], [2.0, 0.0]]})
    both.same("create_table", lambda db: db.create_table("t", frame).schema)
    both.same("add", lambda db: t(db).add(frame))
    both.same("search", lambda db: t(db).search([1.0, 0.0]).limit(3).to_polars().to_arrow())
    both.same("scan", lambda db: t(db).search().where("id = 2").to_polars().to_dicts())
    both.same("to_polars", lambda db: t(db).to_polars().collect().to_dicts())
    both.same("merge", lambda db: t(db).merge_insert("id").when_not_matched_insert_all().execute(frame))


def pandas(both):
    """Writes and reads frames of pandas."""
    frame = pd.DataFrame({"id": [1, 2], "text": ["a", None], "vector": [[1.0, 0.0], [2.0, 0.0]]})
    both.same("create_table", lambda db: db.create_table("t", frame).schema)
    both.same("add", lambda db: t(db).add(frame))
    both.same("search", lambda db: t(db).search([1.0, 0.0]).limit(3).to_pandas().to_json())
    both.same("scan", lambda db: t(db).search().where("id = 2").to_pandas().to_json())
    both.same("to_pandas", lambda db: t(db).to_pandas().to_json())

    async def to_pandas(db):
        return (await (await db.open_table("t")).to_pandas()).to_json()

    both.same_async("to_pandas, async", to_pandas)


class Pet(LanceModel):
    name: str
    age: Optional[int] = None
    toys: List[str] = []
    vector: Vector(2)


def pydantic(both):
    """Describes rows by classes."""
    pets = [Pet(name="Rex", age=3, toys=["ball"], vector=[1.0, 0.0]), Pet(name="Mia", vector=[0.0, 1.0])]
    both.same("create_table of a class", lambda db: db.create_table("t", schema=Pet).schema)
    both.same("add", lambda db: t(db).add(pets))
    both.same("to_pydantic", lambda db: t(db).search([1.0, 0.0]).limit(2).to_pydantic(Pet))
    both.same("create_table of objects", lambda db: db.create_table("u", pets).schema)
    both.same("to_arrow", lambda db: t(db).search().to_arrow())
    both.same("of another class", lambda db: t(db).add([{"name": "x", "vector": [1.0]}]))


@register("beside-letters")
class Letters(TextEmbeddingFunction):
    """Embeds a text by its length and its first letter."""

    def ndims(self):
        return 2

    def generate_embeddings(self, texts):
        return [[float(len(text)), float(ord(text[0]))] for text in texts]


letters = EmbeddingFunctionRegistry.get_instance().get("beside-letters").create()


class Word(LanceModel):
    text: str = letters.SourceField()
    vector: Vector(letters.ndims()) = letters.VectorField()


def embeddings(both):
    """Computes vectors of texts in the client."""
    both.same("create_table", lambda db: db.create_table("t", schema=Word).schema)
    both.same("add", lambda db: t(db).add([{"text": "apple"}, {"text": "plum"}, {"text": "pear"}]))
    both.same("rows", lambda db: t(db).search().to_arrow())
    both.same("search by text", lambda db: t(db).search("plums").limit(2).to_arrow())
    both.same("search by text in a column", lambda db: t(db).search("plums", "vector").limit(2).to_arrow())
    both.same("functions", lambda db: sorted(t(db).embedding_functions))
    both.same("add without texts", lambda db: t(db).add(fruit(1).select(["id"])))


KINDS = [polars, pandas, pydantic, embeddings]
